package runs

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"bobbin/app/core"
)

// runStore is what a Service needs of the runs in storage.
type runStore interface {
	Claim(ctx context.Context, session core.SessionID, worker string) (core.Claimed, error)
	TakeOver(ctx context.Context, worker string, all bool, limit int) ([]core.Run, error)
	Waiting(ctx context.Context, limit int) ([]core.SessionID, error)
	Renew(ctx context.Context, worker string, runs []core.RunID) (lost []core.RunID, err error)
	Release(ctx context.Context, worker string) error
	HandBack(ctx context.Context, worker string, run core.RunID) error
	Yield(ctx context.Context, run core.RunID, attempt int) error
	CancelRequested(ctx context.Context, worker string) ([]core.RunID, error)
	Approvals(ctx context.Context, run core.RunID) ([]core.Approval, error)
	ExpireApprovals(ctx context.Context, limit int) ([]core.Event, error)
}

// messageStore reads the message log.
type messageStore interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, session core.SessionID, after core.MessageID) ([]core.Message, error)
}

// engine executes runs. Execute returns when the run has ended, or waits for a
// decision, in the database, or with the error that ended it; it honors the end of ctx.
type engine interface {
	Execute(ctx context.Context, run core.Run) error
}

// counter counts the tokens of a message for the log.
type counter interface {
	Message(m core.Message) int
}

// signals wake other processes. What they say may be lost.
type signals interface {
	Send(ctx context.Context, signal core.Signal)
	// Receive yields what others send, until ctx ends or with an error as its last element.
	Receive(ctx context.Context) iter.Seq2[core.Signal, error]
}

// Limits bound what runs may take. Zero values mean the defaults.
type Limits struct {
	Concurrent int           // runs that execute at once in this process; default 256, more wait
	RunTime    time.Duration // of one execution; default 10 min
	Grace      time.Duration // for runs at work when the process stops; default 30 s
}

func (l Limits) withDefaults() Limits {
	if l.Concurrent <= 0 {
		l.Concurrent = 256
	}
	if l.RunTime <= 0 {
		l.RunTime = 10 * time.Minute
	}
	if l.Grace <= 0 {
		l.Grace = 30 * time.Second
	}
	return l
}

// observer is told of executions (telemetry). It must not wait for anything.
type observer interface {
	// Run is told of an execution that begins, which goes on with the context returned.
	// ended is called once, with what became of it, and the code of a failed run's error.
	Run(ctx context.Context, run core.Run) (_ context.Context, ended func(status, code string))
	lookout
}

// lookout is told how work is kept, by kinds of work (telemetry).
type lookout interface {
	// Renewed is told of leases that were to be lengthened: err = none was.
	Renewed(kind core.WorkKind, renewed, lost int, err error)
	// TookOver is told of work that another process, or an earlier one, had begun.
	TookOver(kind core.WorkKind, n int)
	// Found is told of work that nobody had told of: the sweep found it.
	Found(what string, n int)
	// Refused is told of a write that came too late: somebody else has the work.
	Refused(kind core.WorkKind)
}

// What a sweep finds.
const (
	foundLapsed  = "lapsed_run" // its process has died, or cannot reach the database
	foundQueued  = "queued_run" // nobody was told that it may begin
	foundExpired = "approval"   // nobody has decided in time
)

// silent is the observer of a Service that has none.
type silent struct{}

func (silent) Run(ctx context.Context, _ core.Run) (context.Context, func(status, code string)) {
	return ctx, func(string, string) {}
}
func (silent) Renewed(core.WorkKind, int, int, error) {}
func (silent) TookOver(core.WorkKind, int)            {}
func (silent) Found(string, int)                      {}
func (silent) Refused(core.WorkKind)                  {}

// Options are what a Service is made of. All but Limits, Answered, Ended, Observer and
// Signals are required.
type Options struct {
	Store    runStore
	Messages messageStore
	Engine   engine
	Journal  *Journal
	Counter  counter
	// Worker names this process in leases (core.NewWorker): the replica in it is the same
	// after a restart, which takes its runs over at once, and no other process has it.
	Worker string
	Limits Limits
	Logger *slog.Logger
	// Answered is told of each run that ended with an answer, before the session's
	// next one begins; it must not wait for anything. Nil = nobody is.
	Answered func(core.Run)
	// Ended is told likewise of each run that ended in any way. Nil = nobody is.
	Ended    func(core.Run)
	Observer observer // nil = nobody is told
	Signals  signals  // nil = there are no other processes
}

// Service executes runs. Safe for concurrent use.
type Service struct {
	store    runStore
	messages messageStore
	engine   engine
	journal  *Journal
	counter  counter
	worker   string
	limits   Limits
	log      *slog.Logger
	answered func(core.Run)
	ended    func(core.Run)
	observer observer
	signals  signals

	ready chan struct{} // closed when the runs of the process before this one are taken over
	slots chan struct{} // one element for each run at work
	wait  sync.WaitGroup

	mu       sync.Mutex
	stopping bool                      // guarded by mu
	active   map[core.RunID]*execution // guarded by mu
	early    map[core.RunID]time.Time  // guarded by mu; cancels of runs that are not active here (yet)
}

// execution is one attempt of a run in this process.
type execution struct {
	run    core.Run
	halt   context.CancelCauseFunc // gives everything up, the writing of its end included
	cancel context.CancelCauseFunc // breaks off the engine's work
	before <-chan struct{}         // closed when an older attempt has left; nil = there is none
	left   chan struct{}           // closed when this one has left
	atWork bool                    // it has a slot; guarded by Service.mu
	gone   bool                    // its run is given to whoever takes it; guarded by Service.mu
}

// New returns a Service. Nothing is executed before Run is called.
func New(o Options) *Service {
	limits := o.Limits.withDefaults()
	if o.Observer == nil {
		o.Observer = silent{}
	}
	return &Service{
		store: o.Store, messages: o.Messages, engine: o.Engine, journal: o.Journal, counter: o.Counter,
		worker: o.Worker, limits: limits, log: o.Logger, answered: o.Answered, ended: o.Ended, observer: o.Observer, signals: o.Signals,
		ready: make(chan struct{}), slots: make(chan struct{}, limits.Concurrent),
		active: map[core.RunID]*execution{}, early: map[core.RunID]time.Time{},
	}
}

// Start executes a run that this process has claimed: its status is running and
// its lease ours. It returns at once; the work does not depend on the caller's
// context. When the run has ended, the session's next queued run is claimed and
// started. An attempt that is active already is not started again; a newer one
// replaces it. While the process stops nothing is started: the run is handed back.
func (s *Service) Start(run core.Run) {
	if !s.start(run) {
		s.giveUp(run)
	}
}

// giveUp lets others have a run that came while the process stops, without waiting for
// the end of its lease.
func (s *Service) giveUp(run core.Run) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	if err := s.store.HandBack(ctx, s.worker, run.ID); err != nil {
		s.log.WarnContext(ctx, "run not handed back", "run_id", run.ID, "err", err)
		return
	}
	s.wake(ctx, core.Signal{Free: true})
}

// start is Start, and reports false if the process stops.
func (s *Service) start(run core.Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	old := s.active[run.ID]
	if old != nil && old.run.Attempt >= run.Attempt {
		return true
	}
	// A run is detached from whoever asked for it, here and only here.
	whole, halt := context.WithCancelCause(context.Background())
	work, cancel := context.WithCancelCause(whole)
	x := &execution{run: run, halt: halt, cancel: cancel, left: make(chan struct{})}
	if old != nil {
		old.cancel(errLost)
		x.before = old.left
	}
	if _, early := s.early[run.ID]; early || run.CancelRequested {
		cancel(core.ErrCanceled)
		delete(s.early, run.ID)
	}
	s.active[run.ID] = x
	s.wait.Go(func() {
		defer s.leave(x)
		s.live(whole, work, x)
	})
	return true
}

// Cancel breaks off a run that this process executes, or is about to, and
// reports whether it was found at work; if not, the other processes are told, the
// request being in the database already. What the run said so far is kept. Cancel
// does not wait for its end.
func (s *Service) Cancel(run core.RunID) bool {
	if s.cancel(run) {
		return true
	}
	s.wake(context.Background(), core.Signal{Cancel: run})
	return false
}

// cancel is Cancel in this process.
func (s *Service) cancel(run core.RunID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.active[run]
	if x == nil {
		// It may be on its way from the transaction that claimed it to Start.
		s.early[run] = time.Now()
		return false
	}
	x.cancel(core.ErrCanceled)
	return true
}

// Ready is closed when Run has taken over what an earlier process of this name
// left behind. A run that is accepted before would be taken for one of those, and
// be given another attempt: nobody should be let in earlier.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Active counts the runs of this process that have not ended.
func (s *Service) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.active)
}

// leave takes the execution out.
func (s *Service) leave(x *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active[x.run.ID] == x {
		delete(s.active, x.run.ID)
	}
	x.halt(nil)
	close(x.left)
}

// lose breaks off a run that belongs to somebody else now.
func (s *Service) lose(run core.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.active[run]; x != nil {
		x.cancel(errLost)
	}
}

// ids returns the active runs, whose leases are to be renewed.
func (s *Service) ids() []core.RunID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]core.RunID, 0, len(s.active))
	for id, x := range s.active {
		if !x.gone {
			ids = append(ids, id)
		}
	}
	return ids
}

// isStopping reports whether nothing new may begin.
func (s *Service) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}
