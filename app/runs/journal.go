package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
)

// How a write is tried again while the database cannot be reached.
const (
	writeTime    = 15 * time.Second // of one try
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// writer is what a Journal needs of storage.
type writer interface {
	Write(ctx context.Context, w core.RunWrite) (core.Written, error)
	SavePartial(ctx context.Context, run core.RunID, attempt int, text string) error
}

// feed tells those who watch a session what happened in it.
type feed interface {
	Publish(ctx context.Context, events []core.Event)
	Delta(ctx context.Context, e core.Event)
}

// Journal is how a run says what it did: to the log, and to those who watch.
// Safe for concurrent use.
type Journal struct {
	store writer
	feed  feed
	log   *slog.Logger

	mu   sync.Mutex
	runs map[core.RunID]*execState // guarded by mu; the runs that a Service executes
}

// NewJournal returns a Journal that writes to store and tells feed.
func NewJournal(store writer, feed feed, logger *slog.Logger) *Journal {
	return &Journal{store: store, feed: feed, log: logger, runs: map[core.RunID]*execState{}}
}

// Append stores the write and publishes its events. A result must not get lost,
// so it is written even if ctx has ended meanwhile, and while the database
// cannot be reached it is tried again until ctx ends. Errors: ErrStale when
// somebody else owns the run or it has ended; ErrCanceled when it should wait and is
// to be canceled; whatever else the store refuses it for.
func (j *Journal) Append(ctx context.Context, w core.RunWrite) (core.Written, error) {
	w = identified(w)
	defer j.inTurn(w.RunID)()
	var written core.Written
	err := j.persist(ctx, "write run", func(ctx context.Context) error {
		var err error
		written, err = j.store.Write(ctx, w)
		return err
	})
	if err != nil {
		return core.Written{}, fmt.Errorf("write run %s: %w", w.RunID, err)
	}
	j.note(w)
	j.feed.Publish(context.WithoutCancel(ctx), written.Events)
	return written, nil
}

// identified gives the write what makes its tries one: ids.
func identified(w core.RunWrite) core.RunWrite {
	if w.ID == "" {
		w.ID = core.NewID[string]()
	}
	w.Messages = core.WithIDs(w.Messages)
	return w
}

// inTurn waits until no other write of the run is under way: only the last one of a run
// can be tried again. The next may begin when the function that it returns is called.
func (j *Journal) inTurn(run core.RunID) (done func()) {
	j.mu.Lock()
	s := j.runs[run]
	j.mu.Unlock()
	if s == nil {
		return func() {}
	}
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

// Delta passes on an event that is not stored. It remembers the text of the
// message on its way, for a cancel and for a crash, and never waits for the
// database or for a listener.
func (j *Journal) Delta(ctx context.Context, e core.Event) {
	j.remember(e)
	j.feed.Delta(ctx, e)
}

// remember keeps the text so far of the run's message.
func (j *Journal) remember(e core.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[e.RunID]
	if s == nil {
		return
	}
	switch e.Type {
	case core.EventMessageDelta, core.EventReasoningDelta:
		var d core.DeltaData
		if json.Unmarshal(e.Data, &d) == nil {
			s.add(e.Type, d)
		}
	case core.EventMessageDiscarded:
		s.discard(e)
	}
}

// note keeps in mind what was written.
func (j *Journal) note(w core.RunWrite) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[w.RunID]
	if s == nil || s.attempt != w.Attempt {
		return
	}
	for _, m := range w.Messages {
		s.forget(m.ID)
	}
	for _, e := range w.Events {
		s.discard(e)
	}
	s.ended, s.waits = s.ended || w.End != nil, s.waits || w.Wait != nil
}

// begin starts to remember the run, with the text that an attempt before this
// one has saved.
func (j *Journal) begin(run core.Run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := core.DecodeDraft(run.Partial)
	j.runs[run.ID] = &execState{turn: make(chan struct{}, 1), attempt: run.Attempt, message: d.MessageID, text: []byte(d.Text)}
}

// finish forgets the run.
func (j *Journal) finish(run core.RunID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.runs, run)
}

// ended reports whether the present attempt has written the run's end.
func (j *Journal) ended(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.ended
}

// waits reports whether the present attempt has written that the run waits.
func (j *Journal) waits(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.waits
}

// draft returns the run's message on its way; an empty one = none.
func (j *Journal) draft(run core.RunID) core.Draft {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	if s == nil {
		return core.Draft{}
	}
	return core.Draft{MessageID: s.message, Text: string(s.text)}
}

// clear forgets the text that an attempt before this one has saved: it is taken
// back now.
func (j *Journal) clear(run core.RunID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.runs[run]; s != nil {
		s.forget(s.message)
		s.cleared = true
	}
}

// cleared reports whether clear was called for the present attempt.
func (j *Journal) cleared(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.cleared
}

// saveDrafts saves what the runs have said since the last time.
func (j *Journal) saveDrafts(ctx context.Context) {
	for _, run := range j.unsaved() {
		j.saveDraft(ctx, run)
	}
}

// unsaved returns the runs that have something to save.
func (j *Journal) unsaved() []core.RunID {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []core.RunID
	for id, s := range j.runs {
		if s.unsaved {
			ids = append(ids, id)
		}
	}
	return ids
}

// saveDraft saves what the run has said so far, unless another write of the run is under
// way: saved after the one that took it back, or that put it into the log, the text would
// come back from the dead. It may fail: the text is a convenience, and the next second
// brings another try.
func (j *Journal) saveDraft(ctx context.Context, run core.RunID) {
	j.mu.Lock()
	s := j.runs[run]
	j.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime) // a write may wait for it
	defer cancel()
	j.mu.Lock()
	if !s.unsaved {
		j.mu.Unlock()
		return
	}
	s.unsaved = false
	d := core.Draft{Attempt: s.attempt, MessageID: s.message, Text: string(s.text)}
	j.mu.Unlock()

	partial, err := d.Encode()
	if err == nil {
		err = j.store.SavePartial(ctx, run, d.Attempt, partial)
	}
	if err != nil && !errors.Is(err, core.ErrStale) {
		j.log.WarnContext(ctx, "text so far not saved", "run_id", run, "err", explain(err))
		j.mu.Lock()
		s.unsaved = true
		j.mu.Unlock()
	}
}

// persist does the write, and tries again until it succeeds, is refused, or ctx
// ends. A try is not broken off by the end of ctx.
func (j *Journal) persist(ctx context.Context, what string, write func(context.Context) error) error {
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		err := write(try)
		cancel()
		if err == nil || refused(err) {
			return err
		}
		j.log.ErrorContext(ctx, "database not reached, trying again", "doing", what, "after", backoff, "err", explain(err))
		if pause(ctx, backoff) != nil {
			return fmt.Errorf("gave up: %w: %w", context.Cause(ctx), err)
		}
	}
}

// refused reports whether another try would get the same answer.
func refused(err error) bool {
	for _, kind := range []error{core.ErrStale, core.ErrNotFound, core.ErrConflict, core.ErrInvalid, core.ErrCanceled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// pause waits for d, or returns the cause of ctx's end.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
