package runs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/runs"
	"bobbin/app/runs/runstest"
)

var ann = core.Scope{Owner: "ann"}

// counter counts bytes.
type counter struct{}

func (counter) Message(m core.Message) int { return len(m.Content) }

// recorder is a feed that remembers.
type recorder struct {
	mu      sync.Mutex
	durable []core.Event
	passing []core.Event
}

func (r *recorder) Publish(_ context.Context, events []core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durable = append(r.durable, events...)
}

func (r *recorder) Delta(_ context.Context, e core.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passing = append(r.passing, e)
}

// published returns the types of the durable events that were published.
func (r *recorder) published() []core.EventType {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []core.EventType
	for _, e := range r.durable {
		out = append(out, e.Type)
	}
	return out
}

// execute is what the engine of a test does with a run.
type execute func(ctx context.Context, j *runs.Journal, run core.Run) error

// process is one process of Bobbin, as far as runs go.
type process struct {
	db      *runstest.DB
	feed    *recorder
	journal *runs.Journal
	service *runs.Service
	session core.Session
	worker  string
	watch   *watch
	dead    bool          // killed after the commit of what it accepts
	log     *bytes.Buffer // to be read when the process has stopped
	stop    func()        // stops it and waits; may be called more than once
}

// Execute makes execute an engine.
type engine struct {
	journal *runs.Journal
	do      execute
}

func (e engine) Execute(ctx context.Context, run core.Run) error { return e.do(ctx, e.journal, run) }

// newProcess returns a process that does not run yet.
func newProcess(t *testing.T, db *runstest.DB, worker string, limits runs.Limits, do execute) *process {
	t.Helper()
	p := &process{db: db, feed: &recorder{}, worker: worker, watch: &watch{}, log: &bytes.Buffer{}, stop: func() {}}
	logger := slog.New(slog.NewTextHandler(p.log, nil))
	p.journal = runs.NewJournal(db.RunStore(), p.feed, logger)
	p.service = runs.New(runs.Options{
		Store: db.RunStore(), Messages: db.MessageStore(), Engine: engine{p.journal, do}, Journal: p.journal,
		Counter: counter{}, Worker: worker, Limits: limits, Logger: logger, Observer: p.watch,
	})
	p.session = db.AddSession()
	t.Cleanup(func() {
		for _, broken := range db.Check() {
			t.Errorf("broken promise: %s", broken)
		}
	})
	return p
}

// run lets the process run until stop, or the end of the test.
func (p *process) run(t *testing.T) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := p.service.Run(ctx); err != nil {
			t.Errorf("got error %v from Run, want nil", err)
		}
	}()
	p.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(p.stop)
	synctest.Wait() // it has taken over what there was
	return p
}

// accept does what chat does with a message.
func (p *process) accept(t *testing.T, content string) core.Run {
	t.Helper()
	a, err := p.db.RunStore().Accept(t.Context(), ann, core.AcceptRun{
		SessionID: p.session.ID, Agent: "assistant", Worker: p.worker,
		Input: core.RunInput{Content: content, Source: core.SourceAPI},
	})
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	p.feed.Publish(t.Context(), a.Events)
	if a.Run.Status == core.RunRunning && !p.dead {
		p.service.Start(a.Run)
	}
	return a.Run
}

// texts returns the contents of the log.
func (p *process) texts() []string {
	var out []string
	for _, m := range p.db.Log(p.session.ID) {
		out = append(out, m.Content)
	}
	return out
}

func (p *process) wantTexts(t *testing.T, want ...string) {
	t.Helper()
	if got := p.texts(); !slices.Equal(got, want) {
		t.Errorf("got log %q, want %q", got, want)
	}
}

func (p *process) wantStatus(t *testing.T, run core.Run, want core.RunStatus) core.Run {
	t.Helper()
	got := p.db.Run(run.ID)
	if got.Status != want {
		t.Errorf("got run %q %s (%+v), want %s", run.Input.Content, got.Status, got.Error, want)
	}
	return got
}

// types returns the types of the session's events.
func (p *process) types() []core.EventType {
	var out []core.EventType
	for _, e := range p.db.History(p.session.ID) {
		out = append(out, e.Type)
	}
	return out
}

// discarded returns the messages whose text was taken back.
func (p *process) discarded() []core.MessageID {
	var out []core.MessageID
	for _, e := range p.db.History(p.session.ID) {
		var d core.DiscardedData
		if e.Type == core.EventMessageDiscarded && json.Unmarshal(e.Data, &d) == nil {
			out = append(out, d.MessageID)
		}
	}
	return out
}

// write begins a write of the run.
func write(run core.Run, messages ...core.Message) core.RunWrite {
	return core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: messages}
}

func message(run core.Run, role core.Role, content string) core.Message {
	return core.Message{
		ID: core.NewID[core.MessageID](), SessionID: run.SessionID, Owner: run.Owner, OnPath: true,
		Role: role, Content: content, Status: core.MessageComplete, RunID: run.ID,
	}
}

// answer ends the run with an answer to its message.
func answer(ctx context.Context, j *runs.Journal, run core.Run) error {
	w := write(run, message(run, core.RoleAssistant, "re: "+run.Input.Content))
	w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: w.Messages[0].ID}
	_, err := j.Append(ctx, w)
	return err
}

// say streams a piece of a message.
func say(ctx context.Context, j *runs.Journal, run core.Run, id core.MessageID, offset int, text string) {
	j.Delta(ctx, core.NewEvent(run.SessionID, run.ID, core.EventMessageDelta, core.DeltaData{
		MessageID: id, Attempt: run.Attempt, Offset: offset, Text: text,
	}))
}

// hang waits for the end of ctx, as an engine does at a model that is silent.
func hang(ctx context.Context, _ *runs.Journal, _ core.Run) error {
	<-ctx.Done()
	return errors.Join(errors.New("node \"llm_node\""), ctx.Err())
}

// simulate runs f with a clock of its own.
func simulate(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
