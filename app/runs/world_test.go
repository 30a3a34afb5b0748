package runs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

var ann = core.Tenant{Owner: "ann"}

// counter counts bytes.
type counter struct{ llm.TokenCounter }

func (counter) Message(m core.Message) int { return len(m.Content) }

// execute is what the engine of a test does with a run.
type execute func(ctx context.Context, j *runs.Recorder, run core.Run) error

// process is one process of Bobbin, as far as runs go.
type process struct {
	db      *coretest.Store
	feed    *coretest.Feed // what it has published
	journal *runs.Recorder
	service *runs.Runner
	session core.Session
	worker  string
	dead    bool          // killed after the commit of what it accepts
	log     *bytes.Buffer // to be read when the process has stopped
	stop    func()        // stops it and waits; may be called more than once
}

// Execute makes execute an engine.
type engine struct {
	journal *runs.Recorder
	do      execute
}

func (e engine) Execute(ctx context.Context, c core.Claimed) error {
	return e.do(ctx, e.journal, c.Run)
}

// newProcess returns a process that does not run yet; change changes what it is made of.
func newProcess(t *testing.T, db *coretest.Store, worker string, limits runs.Limits, do execute, change ...func(*runs.Options)) *process {
	t.Helper()
	p := &process{db: db, feed: &coretest.Feed{}, worker: worker, log: &bytes.Buffer{}, stop: func() {}}
	logger := slog.New(slog.NewTextHandler(p.log, nil))
	p.journal = runs.NewRecorder(db.Runs, p.newFeed(), logger)
	o := runs.Options{
		Store: db.Runs, Messages: db.Messages, Execute: engine{p.journal, do}.Execute, Journal: p.journal,
		Counter: counter{}, Worker: worker, Limits: limits, Logger: logger, Observer: core.NoObserver{},
	}
	for _, c := range change {
		c(&o)
	}
	p.service = runs.New(o)
	p.session = db.AddSession()
	t.Cleanup(func() {
		for _, broken := range db.Check() {
			t.Errorf("broken promise: %s", broken)
		}
	})
	return p
}

// newFeed returns a feed that publishes to p.feed alone.
func (p *process) newFeed() *events.Feed {
	return events.New(recordedBus{events.NewLocal(0), p.feed}, nil, slog.New(slog.DiscardHandler))
}

// recordedBus is a bus that keeps the events.
type recordedBus struct {
	*events.Local
	feed *coretest.Feed
}

func (b recordedBus) PublishEvent(_ string, e core.Event) error {
	b.feed.Publish(context.Background(), []core.Event{e})
	return nil
}

// run lets the process run until stop, or the end of the test.
func (p *process) run(t *testing.T) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		compare.Error(t, "from Run", nil, p.service.Run(ctx))
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
	accept := func(worker string) (core.Accepted, error) {
		a, err := p.db.Runs.Accept(t.Context(), ann, core.AcceptRun{
			SessionID: p.session.ID, Agent: "assistant", Worker: worker,
			Input: core.RunInput{Content: content, Source: core.SourceAPI},
		})
		p.feed.Publish(t.Context(), a.Events)
		return a, err
	}
	var a core.Accepted
	var err error
	if p.dead {
		a, err = accept(p.worker)
	} else {
		a, err = p.service.Begin(t.Context(), accept)
	}
	must.Do(t, err)
	return a.Run
}

// takeOver lets a worker take over the runs of another one, which gives them back.
func takeOver(t *testing.T, db *coretest.Store, from, to string) {
	t.Helper()
	must.Do(t, db.Runs.Release(t.Context(), from))
	due, err := db.Runs.Due(t.Context(), to, false)
	must.True(t, err == nil && len(due) != 0, "got runs %v and error %v, want some to take over", due, err)
	for deaths, n := range due {
		if got, err := db.Runs.TakeOver(t.Context(), core.TakeOver{Worker: to, Deaths: deaths, Limit: n}); err != nil || len(got) != n {
			t.Fatalf("got %d runs and error %v, want %d taken over", len(got), err, n)
		}
	}
}

func (p *process) wantTexts(t *testing.T, want ...string) {
	t.Helper()
	compare.Equal(t, "log", want, coretest.Contents(p.db.Log(p.session.ID)))
}

func (p *process) wantStatus(t *testing.T, run core.Run, want core.RunStatus) core.Run {
	t.Helper()
	got := p.db.Run(run.ID)
	compare.True(t, got.Status == want, "got run %q %s (%+v), want %s", run.Input.Content, got.Status, got.Error, want)
	return got
}

// types returns the types of the session's events.
func (p *process) types() []core.EventType { return coretest.Types(p.db.History(p.session.ID)) }

// discarded returns the messages whose text was retracted.
func (p *process) discarded() []core.MessageID {
	var out []core.MessageID
	for _, e := range p.db.History(p.session.ID) {
		if d, ok := e.Data.(core.DiscardedData); ok {
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
func answer(ctx context.Context, j *runs.Recorder, run core.Run) error {
	w := write(run, message(run, core.RoleAssistant, "re: "+run.Input.Content))
	w.End = &core.RunEnd{Status: core.RunSucceeded, AnswerID: w.Messages[0].ID}
	_, err := j.Append(ctx, w)
	return err
}

// say streams a piece of a message.
func say(ctx context.Context, j *runs.Recorder, run core.Run, id core.MessageID, offset int, text string) {
	j.Delta(ctx, core.NewEvent(run.SessionID, run.ID, core.EventMessageDelta, core.DeltaData{
		MessageID: id, Attempt: run.Attempt, Offset: offset, Text: text,
	}))
}

// hang waits for the end of ctx, as an engine does at a model that is silent.
func hang(ctx context.Context, _ *runs.Recorder, _ core.Run) error {
	<-ctx.Done()
	return errors.Join(errors.New("node \"llm_node\""), ctx.Err())
}

// simulate runs f with a clock of its own.
func simulate(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
