package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/core"
)

// Retries of a write while the database cannot be reached.
const (
	writeTime    = 15 * time.Second // for one try
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 5 * time.Second
)

// Recorder records what a run does, in the log and for watchers. Safe for concurrent use.
type Recorder struct {
	store core.RunStore
	feed  core.Publisher
	log   *slog.Logger

	mu   sync.Mutex
	runs map[core.RunID]*runState // guarded by mu; runs that a Service executes
}

// NewRecorder returns a Journal that writes to store and publishes to feed.
func NewRecorder(store core.RunStore, feed core.Publisher, logger *slog.Logger) *Recorder {
	return &Recorder{store: store, feed: feed, log: logger, runs: map[core.RunID]*runState{}}
}

// Append stores the write and publishes its events. A result must not get lost, so it is
// written even if ctx has ended meanwhile, and retried until ctx ends while the database cannot
// be reached. Errors: ErrStale when another process owns the run or it has ended; ErrCanceled
// when it should wait but is to be canceled; anything else for which the store refuses it.
func (j *Recorder) Append(ctx context.Context, w core.RunWrite) (core.Written, error) {
	w = withIDs(w)
	defer j.lockRun(w.RunID)()
	w.LastEvent, w.LastMessage = j.endOfPath(w)
	var written core.Written
	err := j.callWithRetry(ctx, "write run", func(ctx context.Context) error {
		var err error
		written, err = j.store.Write(ctx, w)
		return err
	})
	if err != nil {
		return core.Written{}, fmt.Errorf("write run %s: %w", w.RunID, err)
	}
	j.applyWrite(w, &written)
	j.feed.Publish(context.WithoutCancel(ctx), written.Events)
	return written, nil
}

// withIDs gives the write the ids that make its retries idempotent.
func withIDs(w core.RunWrite) core.RunWrite {
	if w.ID == "" {
		w.ID = core.NewID[string]()
	}
	w.Messages = core.WithIDs(w.Messages)
	return w
}

// endOfPath returns the session's last event and the last message on the path then, as far as they
// are known.
func (j *Recorder) endOfPath(w core.RunWrite) (int64, core.MessageID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[w.RunID]
	if s == nil || s.attempt != w.Attempt || s.lastEvent == 0 || s.lastMessage == "" {
		return 0, ""
	}
	return s.lastEvent, s.lastMessage
}

// lockRun waits until no other write of the run is in progress: only the last write of a run
// can be retried. The next one may begin when the returned function is called.
func (j *Recorder) lockRun(run core.RunID) (done func()) {
	j.mu.Lock()
	s := j.runs[run]
	j.mu.Unlock()
	if s == nil {
		return func() {}
	}
	s.turn <- struct{}{}
	return func() { <-s.turn }
}

// Delta publishes an event that is not stored. It keeps the partial text of the message for a
// cancel or a crash, and never waits for the database or for a listener.
func (j *Recorder) Delta(ctx context.Context, e core.Event) {
	j.mu.Lock()
	if s := j.runs[e.RunID]; s != nil {
		if d, ok := e.Data.(core.DeltaData); ok {
			s.appendDelta(e.Type, d)
		}
		s.applyDiscard(e)
	}
	j.mu.Unlock()
	j.feed.Delta(ctx, e)
}

// applyWrite updates the state of the run after a write.
func (j *Recorder) applyWrite(w core.RunWrite, written *core.Written) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[w.RunID]
	if s == nil || s.attempt != w.Attempt {
		return
	}
	for _, m := range w.Messages {
		s.dropDraft(m.ID)
	}
	for _, e := range w.Events {
		s.applyDiscard(e)
	}
	s.ended, s.waiting, s.moreQueued = s.ended || w.End != nil, s.waiting || w.Wait != nil, written.MoreQueued
	for _, e := range written.Events {
		if e.Seq != s.lastEvent+1 {
			s.lastEvent = 0
			return
		}
		s.lastEvent = e.Seq
	}
	written.OnlyWriter = s.lastEvent > 0
	if n := len(written.Messages); n > 0 {
		s.lastMessage = written.Messages[n-1].ID
	}
}

// trackRun starts tracking the run, with the draft that an earlier attempt has saved.
func (j *Recorder) trackRun(c core.Claimed) {
	j.mu.Lock()
	defer j.mu.Unlock()
	run, d := c.Run, core.DecodeDraft(c.Run.Partial)
	s := &runState{turn: make(chan struct{}, 1), attempt: run.Attempt, lastEvent: c.Session.LastEventSeq, message: d.MessageID, parent: d.ParentID, text: []byte(d.Text)}
	if run.Attempt == 1 && !run.Input.Regenerate { // the claim has just appended the message
		s.lastMessage = c.Message.ID
	}
	j.runs[run.ID] = s
}

// untrackRun stops tracking the run.
func (j *Recorder) untrackRun(run core.RunID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.runs, run)
}

// hasEnded reports whether the current attempt has written the run's end.
func (j *Recorder) hasEnded(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.ended
}

// hasMoreQueued reports whether the session may have a queued run, by the last write.
func (j *Recorder) hasMoreQueued(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.moreQueued
}

// isWaiting reports whether the current attempt has written that the run waits.
func (j *Recorder) isWaiting(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.waiting
}

// draftOf returns the run's draft; an empty one = none.
func (j *Recorder) draftOf(run core.RunID) core.Draft {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	if s == nil {
		return core.Draft{}
	}
	return core.Draft{MessageID: s.message, Text: string(s.text)}
}

// discardDraft drops the draft that an earlier attempt has saved: it is being retracted.
func (j *Recorder) discardDraft(run core.RunID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.runs[run]; s != nil {
		s.dropDraft(s.message)
		s.draftDiscarded = true
	}
}

// isDraftDiscarded reports whether discardDraft was called for the current attempt.
func (j *Recorder) isDraftDiscarded(run core.RunID) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.runs[run]
	return s != nil && s.draftDiscarded
}

// draftWriters is how many drafts are saved concurrently, so that one that has to wait for the
// database does not delay the others.
const draftWriters = 4

// saveDrafts saves the drafts that have changed.
func (j *Recorder) saveDrafts(ctx context.Context) {
	var writers errgroup.Group
	writers.SetLimit(draftWriters)
	for _, run := range j.unsavedRuns() {
		writers.Go(func() error {
			j.saveDraft(ctx, run)
			return nil
		})
	}
	_ = writers.Wait() // saveDraft logs what goes wrong
}

// unsavedRuns returns the runs whose drafts have changed.
func (j *Recorder) unsavedRuns() []core.RunID {
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

// saveDraft saves the run's draft, unless another write of the run is in progress: saved after
// the write that retracts or completes it, a stale draft would reappear. It may fail: a draft
// is a convenience, and is retried a second later.
func (j *Recorder) saveDraft(ctx context.Context, run core.RunID) {
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
	d := core.Draft{Attempt: s.attempt, MessageID: s.message, ParentID: s.parent, Text: string(s.text)}
	j.mu.Unlock()

	partial, err := d.Encode()
	if err == nil {
		err = j.store.SavePartial(ctx, run, d.Attempt, partial)
	}
	if err != nil && !errors.Is(err, core.ErrStale) {
		j.log.WarnContext(ctx, "draft not saved", "run_id", run, "err", errorText(err))
		j.mu.Lock()
		s.unsaved = true
		j.mu.Unlock()
	}
}

// callWithRetry calls the store until the call succeeds, fails permanently, or ctx ends. The
// end of ctx does not interrupt a call.
func (j *Recorder) callWithRetry(ctx context.Context, what string, write func(context.Context) error) error {
	for backoff := firstBackoff; ; backoff = min(2*backoff, lastBackoff) {
		try, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		err := write(try)
		cancel()
		if err == nil || isPermanent(err) {
			return err
		}
		j.log.ErrorContext(ctx, "database not reached, retrying", "doing", what, "after", backoff, "err", errorText(err))
		if sleep(ctx, backoff) != nil {
			return fmt.Errorf("gave up: %w: %w", context.Cause(ctx), err)
		}
	}
}

// isPermanent reports whether a retry would get the same response.
func isPermanent(err error) bool {
	if core.IsSessionBusy(err) {
		return false
	}
	for _, kind := range []error{core.ErrStale, core.ErrNotFound, core.ErrConflict, core.ErrInvalid, core.ErrCanceled} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// sleep waits for d, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
