package fencing_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// owner is whose sessions these are.
func owner() core.Tenant { return core.Tenant{Owner: "ann"} }

// world is one database.
type world struct {
	t        *testing.T
	db       *db.DB
	runs     *repositories.Runs
	sessions *repositories.Sessions
	messages *repositories.Messages
	events   *repositories.Events
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d := dbtest.Postgres(t)
	return &world{
		t: t, db: d, runs: repositories.NewRuns(d.Gorm), sessions: repositories.NewSessions(d.Gorm),
		messages: repositories.NewMessages(d.Gorm), events: repositories.NewEvents(d.Gorm),
	}
}

// session makes a session.
func (w *world) session() core.Session {
	w.t.Helper()
	return must.Get(w.sessions.Create(w.t.Context(), core.Session{Owner: owner().Owner, Agent: "assistant"}))(w.t)
}

// accept takes a message in the process.
func (w *world) accept(s core.SessionID, content string, p *process) core.Run {
	w.t.Helper()
	a, err := p.service.Begin(w.t.Context(), func(worker string) (core.Accepted, error) {
		return w.runs.Accept(w.t.Context(), owner(), core.AcceptRun{
			SessionID: s, Agent: "assistant", Worker: worker, Input: core.RunInput{Content: content, Source: core.SourceAPI},
		})
	})
	must.Do(w.t, err)
	return a.Run
}

// lapse lets all leases pass. Runs belong to nobody then: a process that was just started
// would wait for the time of a lease before it takes them over from another one.
func (w *world) lapse() {
	w.t.Helper()
	must.Do(w.t, w.db.Gorm.Exec("UPDATE runs SET lease_until = clock_timestamp() - interval '1 second', lease_owner = '' WHERE lease_until IS NOT NULL").Error)
}

// count returns the result of a query for a number.
func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	must.Do(w.t, w.db.Gorm.Raw(query, args...).Scan(&n).Error)
	return n
}

// get returns the run as it is stored.
func (w *world) get(id core.RunID) core.Run {
	w.t.Helper()
	return must.Get(w.runs.Get(w.t.Context(), owner(), id))(w.t)
}

// types returns the types of a session's events, whose numbers have no gap.
func (w *world) types(s core.SessionID) (types []core.EventType) {
	w.t.Helper()
	list := must.Get(w.events.After(w.t.Context(), s, 0, 1000))(w.t)
	for i, e := range list {
		if e.Seq != list[0].Seq+int64(i) {
			w.t.Errorf("event %d is number %d", i, e.Seq)
		}
		types = append(types, e.Type)
	}
	return types
}

// bytesOf counts bytes.
type bytesOf struct{ llm.TokenCounter }

func (bytesOf) Message(m core.Message) int { return len(m.Content) }

// patient is storage whose heartbeat and sweep can be held.
type patient struct {
	*repositories.Runs
	held atomic.Bool
}

// Renew does not get through while it is held.
func (p *patient) Renew(ctx context.Context, worker string, list []core.RunID) ([]core.RunID, error) {
	if p.held.Load() {
		return nil, errors.New("the process hangs")
	}
	return p.Runs.Renew(ctx, worker, list)
}

// Due finds nothing while it is held.
func (p *patient) Due(ctx context.Context, worker string, lapsed bool) (map[int]int, error) {
	if p.held.Load() {
		return nil, errors.New("the process hangs")
	}
	return p.Runs.Due(ctx, worker, lapsed)
}

// outcomes is an observer that tells how executions end.
type outcomes struct {
	core.NoObserver
	ended   chan string
	refused atomic.Int32
}

func (o *outcomes) Run(ctx context.Context, _ core.Run) (context.Context, func(status, code string)) {
	return ctx, func(status, _ string) { o.ended <- status }
}
func (o *outcomes) Count(counter core.Counter, n int, _ ...string) {
	if counter == core.CountFenced {
		o.refused.Add(int32(n))
	}
}

// process executes runs.
type process struct {
	worker  string
	store   *patient
	journal *runs.Recorder
	service *runs.Runner
	watch   *outcomes
}

// process starts a process; it ends with the test.
func (w *world) process(worker string, do func(ctx context.Context, p *process, run core.Run) error) *process {
	w.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	p := &process{worker: worker, store: &patient{Runs: w.runs}, watch: &outcomes{ended: make(chan string, 10)}}
	p.journal = runs.NewRecorder(w.runs, events.New(events.NewLocal(0), nil, logger), logger)
	p.service = runs.New(runs.Options{
		Store: p.store, Messages: w.messages, Journal: p.journal, Counter: bytesOf{}, Worker: worker, Logger: logger,
		Execute:  func(ctx context.Context, c core.Claimed) error { return do(ctx, p, c.Run) },
		Observer: p.watch,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.service.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	<-p.service.Ready()
	return p
}

// message is one of the run's, by the role.
func message(run core.Run, role core.Role, content string) core.Message {
	return core.Message{
		ID: core.NewID[core.MessageID](), SessionID: run.SessionID, Owner: run.Owner, OnPath: true,
		Role: role, Content: content, Status: core.MessageComplete, RunID: run.ID,
	}
}

// answer ends a run with an answer.
func answer(ctx context.Context, p *process, run core.Run) error {
	m := message(run, core.RoleAssistant, "an answer by "+p.worker)
	_, err := p.journal.Append(ctx, core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m},
		End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
	return err
}
