package memories

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"

	"bobbin/app/core"
)

// loadBatch is how many vectors are read at once.
const loadBatch = 1000

// indexes keeps the indexes of the owners who searched last, all of them together
// below a bound. Safe for concurrent use.
type indexes struct {
	store vectors
	most  int64 // bytes
	log   *slog.Logger

	mu    sync.Mutex
	known map[string]*entry // guarded by mu; by owner
	order *list.List        // guarded by mu; of *entry, the last asked for first
	total int64             // guarded by mu; bytes
}

// entry is an owner's place among the indexes.
type entry struct {
	owner string
	at    *list.Element // guarded by indexes.mu; nil = dropped
	bytes int64         // guarded by indexes.mu; what it counts for in the total

	mu    sync.RWMutex
	index *index // guarded by mu; nil = not loaded
}

func newIndexes(store vectors, most int64, log *slog.Logger) *indexes {
	return &indexes{store: store, most: most, log: log, known: map[string]*entry{}, order: list.New()}
}

// with calls use with the owner's index, up to date, and returns true; or false if
// it is too large to be kept. Use must only read.
func (x *indexes) with(ctx context.Context, owner string, space core.VectorSpace, use func(*index)) (bool, error) {
	if x.most <= 0 {
		return false, nil
	}
	e := x.entry(owner)
	now, err := x.store.Changes(ctx, owner, 0, core.VectorSpace{})
	if err != nil {
		return false, err
	}
	same := func(revision int64) bool { return revision == now.Revision }
	if e.use(space, same, use) {
		return true, nil
	}
	if err := x.refresh(ctx, e, space); err != nil {
		return false, err
	}
	// Another search may have brought it further meanwhile.
	return e.use(space, func(revision int64) bool { return revision >= now.Revision }, use), nil
}

// use calls f if the index is of the space and its revision fits.
func (e *entry) use(space core.VectorSpace, fits func(revision int64) bool, f func(*index)) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.index == nil || e.index.space != space || !fits(e.index.revision) {
		return false
	}
	f(e.index)
	return true
}

// entry returns the owner's entry, as the one that was asked for last.
func (x *indexes) entry(owner string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.known[owner]
	if !ok {
		e = &entry{owner: owner}
		e.at = x.order.PushFront(e)
		x.known[owner] = e
		x.total += entryBytes
		e.bytes = entryBytes
		x.shrink(e)
	}
	x.order.MoveToFront(e.at)
	return e
}

// entryBytes is about what an entry without an index takes.
const entryBytes = 512

// refresh brings the entry's index up to date, if there is room for it.
func (x *indexes) refresh(ctx context.Context, e *entry, space core.VectorSpace) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.index != nil && e.index.space == space {
		reload, err := x.catchUp(ctx, e)
		if err != nil || !reload {
			return err
		}
	}
	e.index = nil
	n, err := x.store.Count(ctx, core.Scope{Owner: e.owner}, space)
	if err != nil {
		return err
	}
	if !x.reserve(e, sizeOf(n, space.Dimension)) {
		return nil
	}
	if e.index, err = x.load(ctx, e, space); err != nil || e.index == nil {
		e.index = nil
		x.reserve(e, 0)
	}
	return err
}

// catchUp applies what happened since the index was up to date. It reports whether
// all has to be read anew, or left.
func (x *indexes) catchUp(ctx context.Context, e *entry) (reload bool, err error) {
	changes, err := x.store.Changes(ctx, e.owner, e.index.revision, e.index.space)
	if err != nil || changes.Reload {
		return true, err
	}
	for _, v := range changes.Changed {
		if !e.index.put(v) {
			x.log.WarnContext(ctx, "memory left out of search", "memory_id", string(v.ID), "err", "its vector is spoiled")
		}
	}
	for _, id := range changes.Gone {
		e.index.drop(id)
	}
	e.index.revision = changes.Revision
	return !x.reserve(e, e.index.bytes()), nil
}

// load reads the owner's vectors; nil = they became too many while they were read.
func (x *indexes) load(ctx context.Context, e *entry, space core.VectorSpace) (*index, error) {
	now, err := x.store.Changes(ctx, e.owner, 0, core.VectorSpace{})
	if err != nil {
		return nil, err
	}
	out := newIndex(space)
	out.revision = now.Revision
	err = each(ctx, x.store, core.Scope{Owner: e.owner}, space, func(v core.MemoryVector) error {
		if !out.put(v) {
			x.log.WarnContext(ctx, "memory left out of search", "memory_id", string(v.ID), "err", "its vector is spoiled")
		}
		if len(out.ids)%blockRows == 0 && !x.reserve(e, out.bytes()) {
			return errTooLarge
		}
		return nil
	})
	if errors.Is(err, errTooLarge) {
		return nil, nil
	}
	return out, err
}

var errTooLarge = errors.New("the vectors do not fit the memory for them")

// each calls f with every vector of the scope, read in batches.
func each(ctx context.Context, store vectors, scope core.Scope, space core.VectorSpace, f func(core.MemoryVector) error) error {
	q := core.VectorQuery{Space: space, Limit: loadBatch}
	for {
		batch, err := store.Vectors(ctx, scope, q)
		if err != nil {
			return err
		}
		for _, v := range batch {
			if err := f(v); err != nil {
				return err
			}
		}
		if len(batch) < loadBatch {
			return nil
		}
		q.After = core.MemoryVector{ID: batch[loadBatch-1].ID, UserID: batch[loadBatch-1].UserID}
	}
}

// reserve counts the entry with so many bytes, and drops others until all fit. It
// reports whether the entry fits at all; one that does not counts for nothing.
func (x *indexes) reserve(e *entry, bytes int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.at == nil {
		return bytes <= x.most // dropped while it was read: this search may still use it
	}
	fits := bytes+entryBytes <= x.most
	if !fits {
		bytes = 0
	}
	x.total += bytes + entryBytes - e.bytes
	e.bytes = bytes + entryBytes
	x.shrink(e)
	return fits
}

// shrink drops the entries that were not asked for longest, but never keep, until
// all fit. Called with mu held.
func (x *indexes) shrink(keep *entry) {
	for at := x.order.Back(); at != nil && x.total > x.most; {
		e, _ := at.Value.(*entry)
		at = at.Prev()
		if e == keep {
			continue
		}
		x.order.Remove(e.at)
		e.at = nil
		delete(x.known, e.owner)
		x.total -= e.bytes
	}
}
