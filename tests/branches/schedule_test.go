package branches_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// schedule lets actors go on one at a time, from one point to the next: the calls of
// the store, before and after, and those of models. Which one goes on is a choice of
// the seed, and so is whether it dies there. A nil schedule has no points.
type schedule struct {
	rand    *rand.Rand
	actors  []*actor
	now     *actor      // that goes on; nil = none
	arrived chan *actor // that came to a point, or to its end
	deaths  int
}

// actor is a process of its own.
type actor struct {
	name   string
	weight int             // how often it goes on
	resume chan struct{}   // it may
	done   bool            // nothing more comes
	dead   bool            // what it does has no effect any more, until it is reborn
	die    func() bool     // kills it; false = not now
	born   func()          // starts its process again
	act    func(s *actor)  // what it does
	ctx    context.Context // of the process
}

// errDied is what the store tells the dead.
var errDied = errors.New("the process is dead")

// deathRate is how many points there are for each death.
const deathRate = 60

// point lets another actor go on, and comes back when this one may. An error says that
// the process died meanwhile.
func (s *schedule) point() error {
	if s == nil || s.now == nil {
		return nil
	}
	a := s.now
	s.arrived <- a
	<-a.resume
	if a.dead {
		return errDied
	}
	return nil
}

// reborn starts the process of the actor at work again, if it died.
func (s *schedule) reborn() {
	if s != nil && s.now != nil && s.now.dead {
		s.now.dead = false
		s.now.born()
	}
}

// run lets the actors act until all have come to their ends.
func (s *schedule) run() {
	s.arrived = make(chan *actor)
	for _, a := range s.actors {
		a.resume = make(chan struct{})
		go func() {
			<-a.resume
			a.act(a)
			a.done = true
			s.arrived <- a
		}()
	}
	for len(s.actors) > 0 {
		a := s.choose()
		if !a.dead && s.rand.IntN(deathRate) == 0 && a.die() {
			a.dead = true
			s.deaths++
		}
		s.now = a
		a.resume <- struct{}{}
		if <-s.arrived; a.done {
			s.actors = slices.DeleteFunc(s.actors, func(b *actor) bool { return b == a })
		}
		s.now = nil
	}
}

// choose returns who goes on.
func (s *schedule) choose() *actor {
	sum := 0
	for _, a := range s.actors {
		sum += a.weight
	}
	n := s.rand.IntN(sum)
	for _, a := range s.actors {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	panic("no actor was chosen")
}

// through does what a call of the store does, between two points.
func through[T any](s *schedule, do func() (T, error)) (T, error) {
	var none T
	if err := s.point(); err != nil {
		return none, err
	}
	v, err := do()
	if died := s.point(); died != nil {
		return none, died
	}
	return v, err
}

// pointed is the stores of a Keeper with a point before and after each call.
type pointed struct {
	schedule *schedule
	compaction.Stores
}

// stores returns them as a Keeper takes them.
func (p pointed) stores() compaction.Stores {
	out := p.Stores
	out.Sessions, out.Messages, out.Summaries, out.Runs = pointedSessions{p: p}, pointedMessages{p: p}, pointedSummaries{p: p}, pointedRuns{p: p}
	return out
}

type pointedSessions struct {
	core.SessionStore
	p pointed
}

func (s pointedSessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	return through(s.p.schedule, func() (core.Session, error) { return s.p.Sessions.Get(ctx, tenant, id) })
}

func (s pointedSessions) ApplyContext(ctx context.Context, tenant core.Tenant, c core.ContextChange) (out core.Session, events []core.Event, err error) {
	out, err = through(s.p.schedule, func() (core.Session, error) {
		session, written, err := s.p.Sessions.ApplyContext(ctx, tenant, c)
		events = written
		return session, err
	})
	return out, events, err
}

func (s pointedSessions) SummaryWork(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.SummaryWork, error) {
	return through(s.p.schedule, func() (core.SummaryWork, error) { return s.p.Sessions.SummaryWork(ctx, tenant, id) })
}

func (s pointedSessions) SummaryFailed(ctx context.Context, tenant core.Tenant, f core.SummaryFailure) ([]core.Event, error) {
	return through(s.p.schedule, func() ([]core.Event, error) { return s.p.Sessions.SummaryFailed(ctx, tenant, f) })
}

func (s pointedSessions) LeaseSummary(ctx context.Context, tenant core.Tenant, id core.SessionID, holder string, d time.Duration) (core.LeaseResult, error) {
	return through(s.p.schedule, func() (core.LeaseResult, error) { return s.p.Sessions.LeaseSummary(ctx, tenant, id, holder, d) })
}

func (s pointedSessions) FreeSummary(ctx context.Context, id core.SessionID, holder string) error {
	_, err := through(s.p.schedule, func() (struct{}, error) { return struct{}{}, s.p.Sessions.FreeSummary(ctx, id, holder) })
	return err
}

func (s pointedSessions) FreeSummaries(ctx context.Context, prefix string) error {
	return s.p.Sessions.FreeSummaries(ctx, prefix)
}

type pointedMessages struct {
	core.MessageStore
	p pointed
}

func (m pointedMessages) GetMessagesAfter(ctx context.Context, tenant core.Tenant, id core.SessionID, after core.MessageID) ([]core.Message, error) {
	return through(m.p.schedule, func() ([]core.Message, error) { return m.p.Messages.GetMessagesAfter(ctx, tenant, id, after) })
}

func (m pointedMessages) GetMessages(ctx context.Context, tenant core.Tenant, id core.SessionID, ids []core.MessageID) ([]core.Message, error) {
	return through(m.p.schedule, func() ([]core.Message, error) { return m.p.Messages.GetMessages(ctx, tenant, id, ids) })
}

func (m pointedMessages) Pinned(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.Message, error) {
	return through(m.p.schedule, func() ([]core.Message, error) { return m.p.Messages.Pinned(ctx, tenant, id) })
}

func (m pointedMessages) CountOnPath(ctx context.Context, tenant core.Tenant, id core.SessionID) (int, error) {
	return m.p.Messages.CountOnPath(ctx, tenant, id)
}

type pointedSummaries struct {
	core.SummaryStore
	p pointed
}

func (m pointedSummaries) List(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	return m.p.Summaries.List(ctx, tenant, id, q)
}

func (m pointedSummaries) Find(ctx context.Context, tenant core.Tenant, id core.SessionID, ids []core.SummaryID) ([]core.Summary, error) {
	return through(m.p.schedule, func() ([]core.Summary, error) { return m.p.Summaries.Find(ctx, tenant, id, ids) })
}

func (m pointedSummaries) Versions(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.SummaryVersion, error) {
	return through(m.p.schedule, func() ([]core.SummaryVersion, error) { return m.p.Summaries.Versions(ctx, tenant, id) })
}

func (m pointedSummaries) Loops(ctx context.Context, tenant core.Tenant, id core.SessionID, after int64) ([]core.Summary, error) {
	return through(m.p.schedule, func() ([]core.Summary, error) { return m.p.Summaries.Loops(ctx, tenant, id, after) })
}

type pointedRuns struct {
	core.RunStore
	p pointed
}

func (r pointedRuns) Active(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Run, error) {
	return through(r.p.schedule, func() (core.Run, error) { return r.p.Runs.Active(ctx, tenant, id) })
}
