package coretest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/repositories"
)

// Stores are the stores of one database.
type Stores struct {
	Sessions  core.SessionStore
	Messages  core.MessageStore
	Branches  *repositories.Branches
	Summaries core.SummaryStore
	Runs      core.RunStore
	Events    core.EventStore
}

// Store is the stores in memory. Safe for concurrent use.
type Store struct {
	Sessions  Sessions
	Messages  Messages
	Summaries Summaries
	Runs      Runs
	Events    Events

	mu            sync.Mutex
	conversations map[core.SessionID]*Conversation // guarded by mu, as all below
	runs          map[core.RunID]*core.Run
	approvals     map[core.RunID][]core.Approval
	writes        map[core.RunID]lastWrite
	calls         map[string]int
	before        func(call string) error
	after         func(call string) error
	broken        []string
}

// Conversation is a session with everything that is stored with it. The store keeps its pointer:
// a test reads and changes it in Edit, or while no other goroutine uses the store.
type Conversation struct {
	Session   core.Session
	Messages  []core.Message // of all branches, by seq
	Summaries []core.Summary // by version
	Events    []core.Event
	Starts    []core.ToolExecution
	Calls     []core.ModelCall
	Writes    []core.RunWrite // that were committed
	Partials  []string        // that SavePartial was passed
	Breaker   core.Breaker
	Lease     Lease // of the summary work

	WithTexts int              // how many of the newest messages of a list have their texts; 0 = all
	Cursors   []core.MessageID // that GetMessagesAfter was passed
	Loaded    []core.MessageID // that GetMessages was passed

	queueSeq  int64
	fresh     []core.Event // of the current call
	forgotten int64        // number of the newest removed event
}

// Lease is the right of a holder to summarize a session.
type Lease struct {
	Holder string
	Since  time.Time
	Until  time.Time
}

// lastWrite is the last write of a run and its result.
type lastWrite struct {
	id      string
	attempt int
	written core.Written
}

// New returns an empty store.
func New() *Store {
	s := &Store{
		conversations: map[core.SessionID]*Conversation{}, runs: map[core.RunID]*core.Run{},
		approvals: map[core.RunID][]core.Approval{}, writes: map[core.RunID]lastWrite{}, calls: map[string]int{},
	}
	s.Sessions, s.Messages, s.Summaries, s.Runs, s.Events = Sessions{s: s}, Messages{s: s}, Summaries{s: s}, Runs{s: s}, Events{s: s}
	return s
}

// Stores returns the stores as those of core. It has no branches.
func (s *Store) Stores() Stores {
	return Stores{Sessions: s.Sessions, Messages: s.Messages, Summaries: s.Summaries, Runs: s.Runs, Events: s.Events}
}

// Before sets a function that is called before each call, with the name of its method, such as
// "Write"; those that several stores have are "Runs.Get", "Summaries.List". Its error fails the
// call. It may use the store. Nil = none. Before returns the function of before.
func (s *Store) Before(f func(call string) error) (former func(call string) error) {
	s.Edit(func() { former, s.before = s.before, f })
	return former
}

// After is Before for calls that are committed: the error takes the place of their result.
func (s *Store) After(f func(call string) error) { s.Edit(func() { s.after = f }) }

// Edit runs f while no call is executed.
func (s *Store) Edit(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Conversation returns what is stored of a session.
func (s *Store) Conversation(id core.SessionID) (c *Conversation) {
	s.Edit(func() { c = s.conversations[id] })
	return c
}

// CallCount returns how often a method was called.
func (s *Store) CallCount(call string) (n int) {
	s.Edit(func() { n = s.calls[call] })
	return n
}

// Log returns a copy of the messages of a session.
func (s *Store) Log(id core.SessionID) (out []core.Message) {
	s.Edit(func() { out = slices.Clone(s.conversations[id].Messages) })
	return out
}

// History returns a copy of the events of a session.
func (s *Store) History(id core.SessionID) (out []core.Event) {
	s.Edit(func() { out = slices.Clone(s.conversations[id].Events) })
	return out
}

// Run returns a run as it is stored.
func (s *Store) Run(id core.RunID) (out core.Run) {
	s.Edit(func() { out = *s.runs[id] })
	return out
}

// RunsOf returns the runs of a session in the order of acceptance.
func (s *Store) RunsOf(id core.SessionID) (out []core.Run) {
	s.Edit(func() {
		for _, r := range s.runsOf(id) {
			out = append(out, *r)
		}
	})
	return out
}

// AddSession stores a session of the owner "ann" with the agent "assistant".
func (s *Store) AddSession() core.Session {
	return s.AddConversation(core.Session{Owner: "ann", Agent: "assistant"}).Session
}

// AddConversation stores a session and returns what is stored of it.
func (s *Store) AddConversation(in core.Session) *Conversation {
	session, err := s.Sessions.Create(context.Background(), in)
	if err != nil {
		panic(err)
	}
	return s.Conversation(session.ID)
}

// Say appends finished messages to the log of a session, as earlier turns would have, and returns
// them as stored.
func (s *Store) Say(id core.SessionID, messages ...core.Message) (out []core.Message) {
	s.Edit(func() { out = s.conversations[id].insertMessages(messages, "") })
	return out
}

// StartRun stores a run that a worker has claimed, with its message. It returns
// what is stored, for changes like those of a Conversation.
func (s *Store) StartRun(id core.SessionID, in core.RunInput) (run *core.Run) {
	s.Edit(func() {
		c := s.conversations[id]
		state := conversation.State{Session: c.Session, LastQueue: c.queueSeq, Now: time.Now()}
		change, _ := conversation.Accept(state, core.AcceptRun{SessionID: id, Agent: c.Session.Agent, Input: in, Worker: "worker"}) // of what nothing refuses
		run = s.runs[s.enqueue(c, change).ID]
		c.insertMessages([]core.Message{run.UserMessage()}, run.ID)
	})
	return run
}

// EndRun ends a run without a write of its worker.
func (s *Store) EndRun(id core.RunID) { s.Edit(func() { s.runs[id].Status = core.RunSucceeded }) }

// Check returns the broken guarantees, including those that only the whole state shows.
func (s *Store) Check() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Clone(s.broken)
	for id, c := range s.conversations {
		for i, e := range c.Events {
			if e.Seq != c.forgotten+int64(i+1) {
				out = append(out, fmt.Sprintf("session %s: event %d has number %d", id, i+1, e.Seq))
			}
		}
		out = append(out, checkLog(c.Messages)...)
	}
	return out
}

// checkLog checks that messages of runs do not mix, and that calls have results.
func checkLog(messages []core.Message) []string {
	var out []string
	var last core.RunID
	done := map[core.RunID]bool{}
	open := map[string]bool{}
	for i, m := range messages {
		if m.Seq != int64(i+1) {
			out = append(out, fmt.Sprintf("message %d has seq %d", i+1, m.Seq))
		}
		if m.RunID != last && done[m.RunID] {
			out = append(out, fmt.Sprintf("message %d of run %s comes after another run's", m.Seq, m.RunID))
		}
		last = m.RunID
		done[last] = true
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
		delete(open, m.ToolCallID)
	}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("%d tool calls without a result", len(open)))
	}
	return out
}

// transact runs f as one transaction.
func (s *Store) transact(ctx context.Context, call string, f func() error) error {
	var before, after func(string) error
	s.Edit(func() {
		s.calls[call]++
		before, after = s.before, s.after
	})
	if before != nil {
		if err := before(call); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	var err error
	s.Edit(func() { err = s.commit(call, f) })
	if err == nil && after != nil {
		err = after(call)
	}
	return err
}

// commit runs f and checks that no session has two active runs. The caller holds mu.
func (s *Store) commit(call string, f func() error) error {
	for _, c := range s.conversations {
		c.fresh = nil
	}
	if err := f(); err != nil {
		return err
	}
	active := map[core.SessionID]int{}
	for _, r := range s.runs {
		if isActive(r) {
			active[r.SessionID]++
		}
	}
	for id, n := range active {
		if n > 1 {
			s.broken = append(s.broken, fmt.Sprintf("%s: session %s has %d active runs", call, id, n))
		}
	}
	return nil
}

// inSession is transact for a session that the tenant can see.
func (s *Store) inSession(ctx context.Context, call string, tenant core.Tenant, id core.SessionID, f func(*Conversation) error) error {
	return s.transact(ctx, call, func() error {
		c := s.conversations[id]
		if c == nil || c.Session.Owner != tenant.Owner || tenant.User != "" && tenant.User != c.Session.UserID {
			return core.Errorf(core.ErrNotFound, "session %s does not exist", id)
		}
		return f(c)
	})
}

// emit numbers events and stores them.
func (c *Conversation) emit(events ...core.Event) {
	for _, e := range events {
		c.Session.LastEventSeq++
		e.SessionID, e.Seq = c.Session.ID, c.Session.LastEventSeq
		c.Events = append(c.Events, e)
		c.fresh = append(c.fresh, e)
	}
}

// Feed is an event feed that remembers what it gets. The zero value is ready.
type Feed struct {
	mu     sync.Mutex
	events []core.Event // guarded by mu
}

// Publish keeps durable events.
func (f *Feed) Publish(_ context.Context, events []core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, events...)
}

// Delta keeps a passing event.
func (f *Feed) Delta(ctx context.Context, e core.Event) { f.Publish(ctx, []core.Event{e}) }

// All returns the events of the types in order; without types all of them.
func (f *Feed) All(types ...core.EventType) []core.Event {
	return f.find(func(e core.Event) bool { return len(types) == 0 || slices.Contains(types, e.Type) })
}

// Published returns the durable events.
func (f *Feed) Published() []core.Event {
	return f.find(func(e core.Event) bool { return e.Seq > 0 })
}

// Passing returns the passing events.
func (f *Feed) Passing() []core.Event {
	return f.find(func(e core.Event) bool { return e.Seq == 0 })
}

func (f *Feed) find(match func(core.Event) bool) (out []core.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		if match(e) {
			out = append(out, e)
		}
	}
	return out
}

// Types returns the types of the events.
func Types(events []core.Event) []core.EventType {
	out := make([]core.EventType, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// Data returns the data of an event, which must be a T.
func Data[T any](e core.Event) T { return e.Data.(T) }
