package compaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// world is a Keeper over a store in memory, with scripted models.
type world struct {
	*store
	t       *testing.T
	keeper  *compaction.Keeper
	count   *tokens.Counter
	ruler   *tokens.Calibrator
	model   *llm.Script // answers
	writer  *llm.Script // makes the summaries: the default model
	models  modelsByName
	profile compaction.Profile
	options compaction.Options
}

// modelsByName is a registry; "" is the default model.
type modelsByName map[string]llm.Model

// Get returns the model of the name.
func (m modelsByName) Get(name string) (llm.Model, error) {
	if model, ok := m[name]; ok {
		return model, nil
	}
	return nil, core.Errorf(core.ErrNotFound, "model %q is not known", name)
}

// cheapOf is the key of a model's cheap one.
func cheapOf(name string) string { return "cheap one of " + name }

// Cheap returns the cheap model of the model of the name.
func (m modelsByName) Cheap(name string) (llm.Model, bool) {
	cheap, ok := m[cheapOf(name)]
	return cheap, ok
}

// Profile is the one that the world has, with another model if one is named.
func (w *world) Profile(_ context.Context, _ core.Session, model string) (compaction.Profile, error) {
	p := w.profile
	if model == "" {
		return p, nil
	}
	var err error
	p.Model, err = w.models.Get(model)
	return p, err
}

// toolSpecs is a calculator's definition, so that tools count.
func toolSpecs() []llm.ToolSpec {
	return []llm.ToolSpec{{Name: "calculator", Description: "calculates", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}
}

// newWorld returns a world whose agent has the settings and a model with the window.
func newWorld(t *testing.T, settings core.ContextSettings, window int) *world {
	t.Helper()
	count, err := tokens.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	policy, err := contextwindow.Resolve(contextwindow.Global{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		store: newStore(), t: t, count: count,
		ruler:  tokens.NewCalibrator(func(string) float64 { return 1 }),
		model:  llm.Scripted().WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: window, MaxOutput: window / 8}),
		writer: llm.Scripted().WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 128_000, MaxOutput: 8_000}),
	}
	w.models = modelsByName{"": w.writer, "answerer": w.model}
	w.profile = compaction.Profile{
		Agent: core.Agent{Name: "tester"}, Policy: policy, Model: w.model,
		SystemPrompt: "You are a tester.", ToolUsage: "Use the tools.", Tools: toolSpecs(),
	}
	w.options = compaction.Options{
		Stores: compaction.Stores{Sessions: w.store, Messages: w.store, Summaries: w.store, Runs: w.store},
		Models: w.models, Profiles: w, Counter: count, Calibrator: w.ruler, Publisher: w.store,
		Logger: slog.New(slog.DiscardHandler), SummaryTime: 10 * time.Second, BackgroundTime: time.Minute, Grace: 30 * time.Second, Worker: "w",
	}
	w.keeper = compaction.New(w.options)
	return w
}

// said returns a message with its tokens counted.
func (w *world) said(role core.Role, content string) core.Message {
	m := core.Message{Role: role, Content: content, Status: core.MessageComplete}
	m.TokenCount = w.count.Message(m)
	return m
}

// turns adds n finished exchanges, each message of about size tokens.
func (w *world) turns(n, size int) {
	for i := range n {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			w.add(w.said(role, fmt.Sprintf("turn %d of the %s: %s", i+1, role, strings.Repeat("word ", size))))
		}
	}
}

// ask begins a run: its message is in the log.
func (w *world) ask(content string) {
	w.mu.Lock()
	w.run = core.Run{ID: core.NewID[core.RunID](), SessionID: w.session.ID, Owner: w.session.Owner, Status: core.RunRunning}
	id := w.run.ID
	w.mu.Unlock()
	m := w.said(core.RoleUser, content)
	m.RunID = id
	w.add(m)
}

// turn returns what the next model call depends on, as retrieve_context loads it.
func (w *world) turn() compaction.Turn {
	session, _, log := w.now()
	t := compaction.Turn{Session: session, Profile: w.profile, RunID: w.run.ID}
	for _, m := range log {
		switch {
		case m.Seq <= session.SummaryThroughSeq:
		case m.RunID != "" && m.RunID == w.run.ID:
			t.Run = append(t.Run, m)
		default:
			t.History = append(t.History, m)
		}
	}
	return t
}

// fit is Fit of the turn as it is now, which must succeed.
func (w *world) fit() (compaction.Turn, contextwindow.Decision) {
	w.t.Helper()
	turn, d, err := w.keeper.Fit(w.t.Context(), w.turn())
	if err != nil {
		w.t.Fatal(err)
	}
	if d.Summarize != nil || d.Floor != nil || d.Total > d.Budget.Usable {
		w.t.Fatalf("decision %+v, want a prompt that fits", d)
	}
	return turn, d
}

// request is Request, which must succeed.
func (w *world) request(turn compaction.Turn, d contextwindow.Decision) llm.Request {
	w.t.Helper()
	req, sent, err := w.keeper.Request(w.t.Context(), turn, d)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := w.size(req); got != sent.Total() || d.Shown(got) > d.Total {
		w.t.Errorf("the request has %d tokens, counted are %d, planned %d", got, sent.Total(), d.Total)
	}
	return req
}

// size counts a request as it goes over the wire: the system blocks joined into one
// message, and each message, tool call and tool with its overhead (B8).
func (w *world) size(req llm.Request) int {
	n := tokens.ListOverhead + tokens.MessageOverhead + w.count.Text(strings.Join(req.System, "\n\n")) + w.count.Tools(req.Tools)
	for _, m := range req.Messages {
		n += w.count.Prompted(m)
	}
	return n
}

// report is Report, which must succeed and lose nothing.
func (w *world) report() core.ContextReport {
	w.t.Helper()
	r, err := w.keeper.Report(w.t.Context(), w.scope(), w.session.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.Coverage.Lost != 0 {
		w.t.Errorf("coverage %+v, want none lost", r.Coverage)
	}
	return r
}

func (w *world) scope() core.Scope { return core.Scope{Owner: w.session.Owner} }

// kinds returns the types of the events.
func kinds(events []core.Event) []core.EventType {
	var out []core.EventType
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// data reads the data of an event.
func data[T any](t *testing.T, e core.Event) T {
	t.Helper()
	var out T
	if err := json.Unmarshal(e.Data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// notes is an answer that may be stored as a summary.
const notes = "## Goal\nTest the tester.\n## Facts\n- turn 1 happened"

// always is a step that answers every request with the text.
func always(text string) llm.Step { return llm.Step{Text: []string{text}, Repeat: true} }

// useCounter replaces what counts the texts.
func (w *world) useCounter(c interface {
	Text(string) int
	Tools([]llm.ToolSpec) int
}) {
	w.options.Counter = c
	w.keeper = compaction.New(w.options)
}
