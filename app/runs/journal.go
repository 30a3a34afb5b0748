package runs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/core"
	"bobbin/app/events"
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
	feed  *events.Feed
	log   *slog.Logger

	mu   sync.Mutex
	runs map[core.RunID]*runState // guarded by mu; runs that a Service executes
}

// runState is the journal's state of a run that this process executes, guarded by the Recorder's mu.
type runState struct {
	turn       chan struct{} // has one element while a write of the run is in progress
	run        core.Run
	saved      core.Draft // the last one that was saved; only who has the turn sets it
	ended      bool       // an end was written
	waiting    bool       // the wait was written
	known      any        // for RunWrite.Known; nil if somebody else has written to the session since the run began
	moreQueued bool       // the session may have a next run
}

// NewRecorder returns a Journal that writes to store and publishes to feed.
func NewRecorder(store core.RunStore, feed *events.Feed, logger *slog.Logger) *Recorder {
	return &Recorder{store: store, feed: feed, log: logger, runs: map[core.RunID]*runState{}}
}

// Append stores the write and publishes its events.
func (j *Recorder) Append(ctx context.Context, w core.RunWrite) (core.Written, error) {
	written, err := j.Write(ctx, w)
	if err == nil {
		j.Publish(ctx, written.Events)
	}
	return written, err
}

// Publish publishes the events of a write.
func (j *Recorder) Publish(ctx context.Context, list []core.Event) {
	j.feed.Publish(context.WithoutCancel(ctx), list)
}

// Write stores the write. A result must not get lost, so it is written even if ctx has ended
// meanwhile, and retried until ctx ends while the database cannot be reached. Errors: ErrStale
// when another process owns the run or it has ended; ErrCanceled when it should wait but is to be
// canceled; anything else for which the store refuses it.
func (j *Recorder) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	if w.ID == "" { // its retries are idempotent
		w.ID = core.NewID[string]()
	}
	w.Messages = core.WithIDs(w.Messages)
	s := j.stateOf(w.RunID)
	if s.turn != nil { // only the last write of a run can be retried
		s.turn <- struct{}{}
		defer func() { <-s.turn }()
		s = j.stateOf(w.RunID)
	}
	if s.run.Attempt == w.Attempt {
		w.Known = s.known
	}
	var written core.Written
	err := j.callWithRetry(ctx, "write run", func(ctx context.Context) error {
		var err error
		written, err = j.store.Write(ctx, w)
		return err
	})
	if err != nil {
		return core.Written{}, fmt.Errorf("write run %s: %w", w.RunID, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.runs[w.RunID]; s != nil && s.run.Attempt == w.Attempt {
		s.ended, s.waiting, s.moreQueued, s.known = s.ended || w.End != nil, s.waiting || w.Wait != nil, written.MoreQueued, written.Known
	}
	return written, nil
}

// Delta publishes an event that is not stored. The feed keeps the partial text of the message for a
// cancel or a crash; it never waits for the database or for a listener.
func (j *Recorder) Delta(ctx context.Context, e core.Event) { j.feed.Delta(ctx, e) }

// trackRun starts tracking the run.
func (j *Recorder) trackRun(c core.Claimed) {
	j.feed.Begin(c.Run)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[c.Run.ID] = &runState{turn: make(chan struct{}, 1), run: c.Run, known: c.Known}
}

// untrackRun stops tracking the run.
func (j *Recorder) untrackRun(run core.Run) {
	j.feed.End(run)
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.runs, run.ID)
}

// stateOf returns the state of the run as it is now; an empty one for a run that is not tracked.
func (j *Recorder) stateOf(run core.RunID) runState {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.runs[run]; s != nil {
		return *s
	}
	return runState{}
}

// draftWriters is how many drafts are saved concurrently, so that one that has to wait for the
// database does not delay the others.
const draftWriters = 4

// saveDrafts saves the drafts that have changed.
func (j *Recorder) saveDrafts(ctx context.Context) {
	j.mu.Lock()
	runs := slices.Collect(maps.Keys(j.runs))
	j.mu.Unlock()
	var writers errgroup.Group
	writers.SetLimit(draftWriters)
	for _, run := range runs {
		writers.Go(func() error {
			j.saveDraft(ctx, run)
			return nil
		})
	}
	_ = writers.Wait() // saveDraft logs what goes wrong
}

// saveDraft saves the run's draft if it has changed, unless another write of the run is in progress:
// saved after the write that retracts or completes it, a stale draft would reappear. It may fail: a
// draft is a convenience, and is retried a second later.
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
	d := j.feed.Draft(s.run)
	if d.MessageID == "" || d == s.saved {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime) // a write may wait for it
	defer cancel()
	partial, err := d.Encode()
	if err == nil {
		err = j.store.SavePartial(ctx, run, d.Attempt, partial)
	}
	if err != nil && !errors.Is(err, core.ErrStale) {
		j.log.WarnContext(ctx, "draft not saved", "run_id", run, "err", errorText(err))
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	s.saved = d
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
		if core.Sleep(ctx, backoff) != nil {
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
