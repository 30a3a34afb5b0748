package fencing_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/dbtest"
	"bobbin/app/db/repositories"
	"bobbin/app/runs"
)

// owner is whose sessions these are.
func owner() core.Scope { return core.Scope{Owner: "ann"} }

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

// session makes a session, whose runs are told to the address if there is one.
func (w *world) session(hook *core.Webhook) core.Session {
	w.t.Helper()
	s, err := w.sessions.Create(w.t.Context(), core.Session{Owner: owner().Owner, Agent: "assistant", Webhook: hook})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// accept takes a message for the process of the worker.
func (w *world) accept(s core.SessionID, content, worker string) core.Run {
	w.t.Helper()
	a, err := w.runs.Accept(w.t.Context(), owner(), core.AcceptRun{
		SessionID: s, Agent: "assistant", Worker: worker, Input: core.RunInput{Content: content, Source: core.SourceAPI},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return a.Run
}

// lapse lets all leases pass.
func (w *world) lapse(table string) {
	w.t.Helper()
	if err := w.db.Gorm.Exec("UPDATE " + table + " SET lease_until = clock_timestamp() - interval '1 second' WHERE lease_until IS NOT NULL").Error; err != nil {
		w.t.Fatal(err)
	}
}

// count returns the result of a query for a number.
func (w *world) count(query string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.Gorm.Raw(query, args...).Scan(&n).Error; err != nil {
		w.t.Fatal(err)
	}
	return n
}

// get returns the run as it is stored.
func (w *world) get(id core.RunID) core.Run {
	w.t.Helper()
	r, err := w.runs.Get(w.t.Context(), owner(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// types returns the types of a session's events, whose numbers have no gap.
func (w *world) types(s core.SessionID) (types []core.EventType) {
	w.t.Helper()
	list, err := w.events.After(w.t.Context(), s, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for i, e := range list {
		if e.Seq != list[0].Seq+int64(i) {
			w.t.Errorf("event %d is number %d", i, e.Seq)
		}
		types = append(types, e.Type)
	}
	return types
}

// quiet is a feed without watchers.
type quiet struct{}

func (quiet) Publish(context.Context, []core.Event) {}
func (quiet) Delta(context.Context, core.Event)     {}

// bytesOf counts bytes.
type bytesOf struct{}

func (bytesOf) Message(m core.Message) int { return len(m.Content) }

// engine is what a process does with a run.
type engine func(ctx context.Context, run core.Run) error

// Execute makes it an engine.
func (e engine) Execute(ctx context.Context, run core.Run) error { return e(ctx, run) }

// patient is storage whose heart-beat can be held.
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

// nudge lets a process look for work at once, as another one does that stops.
type nudge chan core.Signal

func (nudge) Send(context.Context, core.Signal) {}

// Receive yields the nudges.
func (n nudge) Receive(ctx context.Context) iter.Seq2[core.Signal, error] {
	return func(yield func(core.Signal, error) bool) {
		for {
			select {
			case s := <-n:
				if !yield(s, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// outcomes is an observer that tells how executions end.
type outcomes struct {
	ended   chan string
	refused atomic.Int32
}

func (o *outcomes) Run(ctx context.Context, _ core.Run) (context.Context, func(status, code string)) {
	return ctx, func(status, _ string) { o.ended <- status }
}
func (*outcomes) Renewed(core.WorkKind, int, int, error) {}
func (*outcomes) TookOver(core.WorkKind, int)            {}
func (*outcomes) Found(string, int)                      {}
func (o *outcomes) Refused(core.WorkKind)                { o.refused.Add(1) }

// process executes runs.
type process struct {
	worker  string
	store   *patient
	journal *runs.Journal
	service *runs.Service
	watch   *outcomes
	nudge   nudge
}

// process starts a process; it ends with the test.
func (w *world) process(worker string, do func(ctx context.Context, p *process, run core.Run) error) *process {
	w.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	p := &process{worker: worker, store: &patient{Runs: w.runs}, watch: &outcomes{ended: make(chan string, 10)}, nudge: make(nudge)}
	p.journal = runs.NewJournal(w.runs, quiet{}, logger)
	p.service = runs.New(runs.Options{
		Store: p.store, Messages: w.messages, Journal: p.journal, Counter: bytesOf{}, Worker: worker, Logger: logger,
		Engine:   engine(func(ctx context.Context, run core.Run) error { return do(ctx, p, run) }),
		Observer: p.watch, Signals: p.nudge,
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
