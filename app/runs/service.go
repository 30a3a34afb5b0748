package runs

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
)

// Limits bound what runs may use. Zero values mean the defaults.
type Limits struct {
	Concurrent int           // runs that execute concurrently in this process; default 256, more wait
	RunTime    time.Duration // of one execution; default 10 min
	Grace      time.Duration // for active runs when the process stops; default 30 s
}

// What a sweep finds.
const (
	foundLapsed  = "lapsed_run" // its process has died, or cannot reach the database
	foundQueued  = "queued_run" // the signal that it may begin was lost
	foundExpired = "approval"   // was not decided in time
)

// Options configure a Service. All are required but Limits, Compactor, Observer and
// Signals.
type Options struct {
	Store    core.RunStore
	Messages core.MessageStore
	// Execute executes a run (agents.Engine.Execute). It returns when the run has ended or waits
	// for a decision, both in the database, or with the error that stopped it. It stops when ctx
	// ends. Session is as the transaction left it that started the run; it is empty for a run
	// that was taken over.
	Execute func(ctx context.Context, c core.Claimed) error
	Journal *Recorder
	Counter llm.TokenCounter
	// Worker names this process in leases (core.NewWorker). Its replica part stays the same
	// after a restart, which takes over its runs immediately; no other process has it.
	Worker string
	Limits Limits
	Logger *slog.Logger
	// Compactor makes the summaries that are due after a run; nil = none are made.
	Compactor *compaction.Compactor
	Observer  core.Observer // nil = none
	Signals   core.Wakeups  // nil = there are no other processes
}

// Runner executes runs. Safe for concurrent use.
type Runner struct {
	Options

	ready          chan struct{} // closed when the runs of an earlier process are taken over
	sweepRequested chan struct{} // has an element when a sweep is requested
	wait           sync.WaitGroup
	waiting        []core.SessionID // sessions for which the sweep had no slot; used by the sweep only

	mu           sync.Mutex
	stopping     bool                      // guarded by mu
	used         int                       // slots that are reserved or taken; guarded by mu
	suspects     int                       // slots among them for runs with suspectDeaths; guarded by mu
	loneRun      *activeRun                // executes alone or waits to; guarded by mu; nil = none
	backlog      bool                      // work may wait for a slot; guarded by mu
	accepts      list.List                 // since when runs wait to be accepted, the longest first; guarded by mu
	contact      databaseContact           // guarded by mu
	active       map[core.RunID]*activeRun // guarded by mu
	earlyCancels map[core.RunID]time.Time  // guarded by mu; cancels of runs that are not active here (yet)
}

// activeRun is one attempt of a run in this process.
type activeRun struct {
	run          core.Run
	claimed      core.Claimed            // by the transaction that started the run; without session and message if it was taken over
	halt         context.CancelCauseFunc // stops everything, including the write of its end
	cancel       context.CancelCauseFunc // stops the engine's work
	previousDone <-chan struct{}         // closed when an older attempt has ended; nil = none
	done         chan struct{}           // closed when this one has ended
	alone        chan struct{}           // closed when nothing else executes; nil = it has a slot and others execute beside it

	retracted bool // the texts of earlier attempts are being retracted; owned by its goroutine
	started   bool // the engine may work; guarded by Service.mu
	isAlone   bool // alone is closed; guarded by Service.mu
	released  bool // its run may be taken over by any process; guarded by Service.mu
	slotFreed bool // guarded by Service.mu
}

// New returns a Service. It executes nothing before Run is called.
func New(o Options) *Runner {
	o.Observer = core.ObserverOrNone(o.Observer)
	if o.Limits.Concurrent <= 0 {
		o.Limits.Concurrent = 256
	}
	if o.Limits.RunTime <= 0 {
		o.Limits.RunTime = 10 * time.Minute
	}
	if o.Limits.Grace <= 0 {
		o.Limits.Grace = 30 * time.Second
	}
	return &Runner{
		Options: o,
		ready:   make(chan struct{}), sweepRequested: make(chan struct{}, 1),
		active: map[core.RunID]*activeRun{}, earlyCancels: map[core.RunID]time.Time{},
	}
}

// Cancel cancels a run that this process executes or is about to execute, and reports whether
// it did. Otherwise it notifies the other processes; the request is in the database already.
// The partial text is kept. Cancel does not wait for the run's end.
func (s *Runner) Cancel(run core.RunID) bool {
	if s.cancelLocal(run) {
		return true
	}
	s.notifyPeers(context.Background(), core.Wakeup{Cancel: run})
	return false
}

// cancelLocal cancels the run in this process, and reports whether it is active here.
func (s *Runner) cancelLocal(run core.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.active[run]
	if x == nil {
		// It may be claimed, but not started yet.
		s.earlyCancels[run] = time.Now()
		return false
	}
	x.cancel(core.ErrCanceled)
	return true
}

// notifyPeers sends a signal to the other processes, if there are any.
func (s *Runner) notifyPeers(ctx context.Context, signal core.Wakeup) {
	if s.Signals != nil {
		s.Signals.Send(ctx, signal)
	}
}

// Ready is closed when Run has taken over the runs of an earlier process of this replica. A run
// accepted before that would count as one of those and get another attempt, so no requests
// should be served earlier.
func (s *Runner) Ready() <-chan struct{} { return s.ready }

// Active returns the number of runs of this process that have not ended.
func (s *Runner) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

// DailyLimit bounds a day in UTC; zero values mean no limit.
type DailyLimit struct {
	MicroUSD int64 // millionths of a US dollar
	Tokens   int64 // of prompts and answers
}

// Budget keeps the cost of an owner's model calls within daily limits. Safe for concurrent use.
//
// The usage records (model_calls) are authoritative: answers, summaries and titles, of all
// processes. They are read before a message is accepted and before each call, and written after
// it. So calls in progress when the limit is reached may exceed it, and no others: at most one
// for each active run. A model without a price is not called for an owner with a limit in
// dollars.
type Budget struct {
	records core.UsageStore
	limits  map[string]DailyLimit
	now     func() time.Time
}

// NewBudget returns a Budget for the owners with limits; now returns the time.
func NewBudget(records core.UsageStore, limits map[string]DailyLimit, now func() time.Time) *Budget {
	return &Budget{records: records, limits: limits, now: now}
}

// Check returns core.ErrSpendLimit when the owner has reached a limit today, with the time
// until midnight UTC, and core.ErrModelUnpriced when a limit in US dollars cannot cover the
// model's calls. For owners without a limit the check is free.
func (b *Budget) Check(ctx context.Context, owner string, model llm.Info) error {
	limit, ok := b.limits[owner]
	if !ok {
		return nil
	}
	if limit.MicroUSD > 0 && !model.Priced() {
		return core.ErrModelUnpriced(model.Name)
	}
	now := b.now().UTC()
	today := now.Truncate(24 * time.Hour)
	spent, err := b.records.Spent(ctx, owner, today)
	if err != nil {
		return fmt.Errorf("spend limit of %s: %w", owner, err)
	}
	reset := today.Add(24 * time.Hour)
	switch {
	case limit.MicroUSD > 0 && spent.MicroUSD >= limit.MicroUSD:
		return core.ErrSpendLimit(fmt.Sprintf("%g US dollars", float64(limit.MicroUSD)/1e6), now, reset)
	case limit.Tokens > 0 && spent.Tokens >= limit.Tokens:
		return core.ErrSpendLimit(fmt.Sprintf("%d tokens", limit.Tokens), now, reset)
	default:
		return nil
	}
}
