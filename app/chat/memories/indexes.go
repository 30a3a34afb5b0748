package memories

import (
	"container/list"
	"context"
	"errors"
	"log/slog"
	"sync"

	"bobbin/app/core"
)

// loadBatch is how many vectors are read in one query.
const loadBatch = 1000

// indexes caches the indexes of the owners who searched last, within a total limit. Safe for
// concurrent use.
type indexes struct {
	store    core.MemoryStore
	maxBytes int64 // bytes
	log      *slog.Logger

	mu    sync.Mutex
	known map[string]*entry // guarded by mu; by owner
	order *list.List        // guarded by mu; of *entry, most recently used first
	total int64             // guarded by mu; bytes
}

// entry is an owner's entry in the cache.
type entry struct {
	owner string
	at    *list.Element // guarded by indexes.mu; nil = evicted
	bytes int64         // guarded by indexes.mu; its share of the total

	mu    sync.RWMutex
	index *index // guarded by mu; nil = not loaded
}

func newIndexes(store core.MemoryStore, most int64, log *slog.Logger) *indexes {
	return &indexes{store: store, maxBytes: most, log: log, known: map[string]*entry{}, order: list.New()}
}

// withIndex calls use with the owner's updated index and returns true, or returns false if the
// index is too large for the cache. Use must only read.
func (x *indexes) withIndex(ctx context.Context, owner string, space core.VectorSpace, use func(*index)) (bool, error) {
	if x.maxBytes <= 0 {
		return false, nil
	}
	e := x.entryOf(owner)
	now, err := x.store.Changes(ctx, owner, 0, core.VectorSpace{})
	if err != nil {
		return false, err
	}
	same := func(revision int64) bool { return revision == now.Revision }
	if e.useIndex(space, same, use) {
		return true, nil
	}
	if err := x.refreshIndex(ctx, e, space); err != nil {
		return false, err
	}
	// Another search may have updated it further meanwhile.
	return e.useIndex(space, func(revision int64) bool { return revision >= now.Revision }, use), nil
}

// useIndex calls f if the index has the space and its revision fits.
func (e *entry) useIndex(space core.VectorSpace, fits func(revision int64) bool, f func(*index)) bool {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.index == nil || e.index.space != space || !fits(e.index.revision) {
		return false
	}
	f(e.index)
	return true
}

// entryOf returns the owner's entry and marks it as the most recently used.
func (x *indexes) entryOf(owner string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	e, ok := x.known[owner]
	if !ok {
		e = &entry{owner: owner}
		e.at = x.order.PushFront(e)
		x.known[owner] = e
		x.total += entryBytes
		e.bytes = entryBytes
		x.evictEntries(e)
	}
	x.order.MoveToFront(e.at)
	return e
}

// entryBytes approximates what an entry without an index takes.
const entryBytes = 512

// refreshIndex updates the entry's index, or loads it if there is room.
func (x *indexes) refreshIndex(ctx context.Context, e *entry, space core.VectorSpace) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.index != nil && e.index.space == space {
		reload, err := x.catchUp(ctx, e)
		if err != nil || !reload {
			return err
		}
	}
	e.index = nil
	n, err := x.store.Count(ctx, core.Tenant{Owner: e.owner}, space)
	if err != nil {
		return err
	}
	if !x.reserveBytes(e, sizeOf(n, space.Dimension)) {
		return nil
	}
	if e.index, err = x.loadIndex(ctx, e, space); err != nil || e.index == nil {
		e.index = nil
		x.reserveBytes(e, 0)
	}
	return err
}

// catchUp applies the changes since the index's revision. It reports whether the index has to
// be reloaded or given up.
func (x *indexes) catchUp(ctx context.Context, e *entry) (reload bool, err error) {
	changes, err := x.store.Changes(ctx, e.owner, e.index.revision, e.index.space)
	if err != nil || changes.Reload {
		return true, err
	}
	for _, v := range changes.Changed {
		if !e.index.putVector(v) {
			x.log.WarnContext(ctx, "memory left out of search", "memory_id", string(v.ID), "err", "its vector is invalid")
		}
	}
	for _, id := range changes.Gone {
		e.index.removeVector(id)
	}
	e.index.revision = changes.Revision
	return !x.reserveBytes(e, e.index.byteSize()), nil
}

// loadIndex reads the owner's vectors; nil = they outgrew the limit while being read.
func (x *indexes) loadIndex(ctx context.Context, e *entry, space core.VectorSpace) (*index, error) {
	now, err := x.store.Changes(ctx, e.owner, 0, core.VectorSpace{})
	if err != nil {
		return nil, err
	}
	out := newIndex(space)
	out.revision = now.Revision
	err = eachVector(ctx, x.store, core.Tenant{Owner: e.owner}, space, func(v core.MemoryVector) error {
		if !out.putVector(v) {
			x.log.WarnContext(ctx, "memory left out of search", "memory_id", string(v.ID), "err", "its vector is invalid")
		}
		if len(out.ids)%blockRows == 0 && !x.reserveBytes(e, out.byteSize()) {
			return errTooLarge
		}
		return nil
	})
	if errors.Is(err, errTooLarge) {
		return nil, nil
	}
	return out, err
}

var errTooLarge = errors.New("the vectors do not fit the cache")

// eachVector calls f with every vector of the scope, read in batches.
func eachVector(ctx context.Context, store core.MemoryStore, tenant core.Tenant, space core.VectorSpace, f func(core.MemoryVector) error) error {
	q := core.VectorQuery{Space: space, Limit: loadBatch}
	for {
		batch, err := store.Vectors(ctx, tenant, q)
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

// reserveBytes sets the entry's size and evicts others until all fit. It reports whether the
// entry fits at all; one that does not counts as empty.
func (x *indexes) reserveBytes(e *entry, bytes int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e.at == nil {
		return bytes <= x.maxBytes // evicted while it was read: this search may still use it
	}
	fits := bytes+entryBytes <= x.maxBytes
	if !fits {
		bytes = 0
	}
	x.total += bytes + entryBytes - e.bytes
	e.bytes = bytes + entryBytes
	x.evictEntries(e)
	return fits
}

// evictEntries evicts the least recently used entries, but never keep, until all fit. The
// caller holds mu.
func (x *indexes) evictEntries(keep *entry) {
	for at := x.order.Back(); at != nil && x.total > x.maxBytes; {
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
