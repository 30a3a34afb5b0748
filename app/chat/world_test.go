package chat_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

var ann = core.Tenant{Owner: "ann"}

// catalog is two agents.
type catalog struct{}

func (catalog) List() []core.Agent {
	return []core.Agent{{Name: "assistant", Version: "v1"}, {Name: "broken", Model: "gone"}}
}

func (c catalog) Get(name string) (core.Agent, error) {
	for _, a := range c.List() {
		if a.Name == name {
			return a, nil
		}
	}
	return core.Agent{}, core.Errorf(core.ErrNotFound, "no agent %s", name)
}

// registry knows the models "" and "demo".
type registry struct{}

func (registry) Get(name string) (llm.Model, error) {
	if name == "" || name == "demo" {
		return llmtest.Scripted(), nil
	}
	return nil, core.Errorf(core.ErrNotFound, "model %q is not known", name)
}

// counter counts bytes.
type counter struct{ llm.TokenCounter }

func (counter) Message(m core.Message) int { return len(m.Content) }

// openService returns a Service over the database, with a real Inspector, and a session of ann's with
// eight turns.
func openService(t *testing.T, d *db.DB) (*chat.Service, core.SessionID) {
	t.Helper()
	const notes = "## Goal\nTest the tester.\n\n## Facts\n- turn 1 happened, and two or three more of them that said the same few words again; nothing else was asked for."
	logger, count, events := slog.New(slog.DiscardHandler), tokens.NewCounter(), events.New(events.NewLocal(0), repositories.NewEvents(d.Gorm), slog.New(slog.DiscardHandler))
	stores := compaction.Stores{
		Sessions: repositories.NewSessions(d.Gorm), Messages: repositories.NewMessages(d.Gorm), Summaries: repositories.NewSummaries(d.Gorm), Runs: repositories.NewRuns(d.Gorm),
		Standing: repositories.NewStandingInstructions(d.Gorm),
	}
	models := titleModels{newTitleWorld(llmtest.Step{Text: []string{notes}, Repeat: true})}
	model := models.WithInfo(llm.Info{Name: "demo", Provider: "scripted", Window: 8192, MaxOutput: 1000})
	preset := func(name string) (contextwindow.Policy, error) {
		return contextwindow.Resolve(contextwindow.Global{}, core.ContextSettings{Policy: name})
	}
	profile := func(context.Context, core.Session, string) (compaction.Profile, error) {
		policy, err := preset("")
		return compaction.Profile{Agent: core.Agent{Name: "assistant"}, Policy: policy, Model: model, SystemPrompt: "You are a tester."}, err
	}
	s := chat.New(chat.Options{
		Sessions: stores.Sessions, Messages: stores.Messages, Branches: repositories.NewBranches(d.Gorm), Summaries: stores.Summaries, Instructions: repositories.NewStandingInstructions(d.Gorm),
		Aliases: repositories.NewAliases(d.Gorm), Feed: events, Agents: catalog{}, FindModel: registry{}.Get, Counter: counter{}, DefaultAgent: "assistant", Limits: chat.Limits{Message: 100}, Logger: logger,
		Inspector: &compaction.Inspector{Preset: preset, Compactor: compaction.New(compaction.Options{
			Stores: stores, Models: models, LoadProfile: profile, Counter: count, Calibrator: tokens.NewCalibrator(func(string) float64 { return 1 }),
			Publisher: events, Logger: logger, SummaryTime: time.Minute, BackgroundTime: time.Minute, Worker: "w",
		})},
	})
	id := must.Get(s.CreateSession(t.Context(), ann, core.Session{}))(t).ID
	var said []core.Message
	for i := range 8 {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			m := core.Message{Role: role, Content: fmt.Sprintf("turn %d of the %s: %s", i+1, role, strings.Repeat("word ", 100))}
			m.TokenCount = count.Message(m)
			said = append(said, m)
		}
	}
	must.Get(stores.Messages.Append(t.Context(), ann, core.AppendMessages{SessionID: id, Messages: said}))(t)
	return s, id
}

// execute is what the engine of a test does with a run.
type execute func(ctx context.Context, j *runs.Recorder, run core.Run) error

type engine struct {
	journal *runs.Recorder
	do      execute
}

func (e engine) Execute(ctx context.Context, c core.Claimed) error {
	return e.do(ctx, e.journal, c.Run)
}

// house is everything that belongs to conversations, with storage in memory.
type house struct {
	*chat.Service
	db      *coretest.Store
	bus     *events.Local
	feed    *events.Feed
	work    *runs.Runner
	session core.Session
}

// newHouse returns a house whose bus has the buffer (0 = normal). It runs until
// the end of the test.
func newHouse(t *testing.T, buffer int, do execute) *house {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	db := coretest.New()
	h := &house{db: db, bus: events.NewLocal(buffer)}
	h.feed = events.New(h.bus, db.Events, logger)
	journal := runs.NewRecorder(db.Runs, h.feed, logger)
	h.work = runs.New(runs.Options{
		Store: db.Runs, Messages: db.Messages, Execute: engine{journal, do}.Execute, Journal: journal,
		Counter: counter{}, Worker: "w", Logger: logger,
	})
	h.Service = chat.New(chat.Options{
		Sessions: db.Sessions, Messages: db.Messages, Runs: db.Runs, Events: db.Events, Feed: h.feed, Work: h.work,
		Agents: catalog{}, FindModel: registry{}.Get, Counter: counter{},
		DefaultAgent: "assistant", Limits: chat.Limits{Message: 1 << 20, Result: 4 << 20, Queued: 20, Owned: 1000, OfUser: 20}, Logger: logger,
	})
	h.session = db.AddSession()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.work.Run(ctx) }()
	<-h.work.Ready()
	t.Cleanup(func() {
		cancel()
		compare.Error(t, "from Run", nil, <-done)
		for _, broken := range db.Check() {
			t.Errorf("broken promise: %s", broken)
		}
	})
	return h
}

func (h *house) send(t *testing.T, content string) core.Accepted {
	t.Helper()
	return h.sendAs(t, core.SendMessage{Content: content})
}

func (h *house) sendAs(t *testing.T, m core.SendMessage) core.Accepted {
	t.Helper()
	m.SessionID = h.session.ID
	a, err := h.Send(t.Context(), ann, m)
	must.True(t, err == nil, "send %q: %v", m.Content, err)
	return a
}

// acceptElsewhere accepts a message that this process has not seen, and executes its run.
func (h *house) acceptElsewhere(t *testing.T) core.Accepted {
	t.Helper()
	a, err := h.work.Begin(t.Context(), func(worker string) (core.Accepted, error) {
		return h.db.Runs.Accept(t.Context(), ann, core.AcceptRun{SessionID: h.session.ID, Worker: worker})
	})
	must.Do(t, err)
	return a
}

func (h *house) wantTexts(t *testing.T, want ...string) {
	t.Helper()
	compare.Equal(t, "log", want, coretest.Contents(h.db.Log(h.session.ID)))
}

// answer streams an answer to the run's message and ends the run with it.
func answer(ctx context.Context, j *runs.Recorder, run core.Run) error {
	m := core.Message{
		ID: core.NewID[core.MessageID](), SessionID: run.SessionID, Owner: run.Owner, OnPath: true,
		Role: core.RoleAssistant, Content: "re: " + run.Input.Content, Status: core.MessageComplete, RunID: run.ID,
	}
	for i := range m.Content {
		say(ctx, j, run, m.ID, i, m.Content[i:i+1])
	}
	_, err := j.Append(ctx, core.RunWrite{
		RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, Messages: []core.Message{m},
		End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
	return err
}

func say(ctx context.Context, j *runs.Recorder, run core.Run, id core.MessageID, offset int, text string) {
	j.Delta(ctx, core.NewEvent(run.SessionID, run.ID, core.EventMessageDelta, core.DeltaData{
		MessageID: id, Attempt: run.Attempt, Offset: offset, Text: text,
	}))
}

// talkUntilCanceled answers, but a message "long" says half a sentence and waits.
func talkUntilCanceled(ctx context.Context, j *runs.Recorder, run core.Run) error {
	if run.Input.Content != "long" {
		return answer(ctx, j, run)
	}
	say(ctx, j, run, core.MessageID("half-"+run.ID), 0, "half a sentence")
	<-ctx.Done()
	return context.Cause(ctx)
}

// simulate runs f with a clock of its own.
func simulate(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}

// wantKind checks an error's kind.
func wantKind(t *testing.T, err, want error) {
	t.Helper()
	compare.Error(t, "err", want, err)
}

// collect ranges over a sequence to its end and returns the types and the error.
func collect(seq iter.Seq2[core.Event, error]) ([]core.EventType, error) {
	var types []core.EventType
	for e, err := range seq {
		if err != nil {
			return types, err
		}
		types = append(types, e.Type)
	}
	return types, nil
}
