package compaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// world is a Compactor over a store in memory, with scripted models.
type world struct {
	*coretest.Conversation
	db      *coretest.Store
	feed    *coretest.Feed
	run     core.Run // in progress; without an id there is none
	t       *testing.T
	keeper  *compaction.Compactor
	count   *tokens.Counter
	ruler   *tokens.Calibrator
	model   *llmtest.Script // answers
	writer  *llmtest.Script // makes the summaries
	models  modelsByName
	profile compaction.Profile
	options compaction.Options
}

// modelsByName is a registry.
type modelsByName map[string]llm.Model

// Get returns the model of the name.
func (m modelsByName) Get(name string) (llm.Model, error) {
	if model, ok := m[name]; ok {
		return model, nil
	}
	return nil, core.Errorf(core.ErrNotFound, "model %q is not known", name)
}

// preferred is the key of the model that a preference selects.
func preferred(p llm.Preference, name string) string { return string(p) + " beside " + name }

// Preferred returns the model that stands under the key.
func (m modelsByName) Preferred(name string, p llm.Preference) (llm.Model, bool) {
	model, ok := m[preferred(p, name)]
	return model, ok
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
	count := tokens.NewCounter()
	policy := must.Get(contextwindow.Resolve(contextwindow.Global{SummaryModel: "writer"}, settings))(t)
	w := &world{
		db: coretest.New(), feed: &coretest.Feed{}, t: t, count: count,
		ruler:  tokens.NewCalibrator(func(string) float64 { return 1 }),
		model:  llmtest.Scripted().WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: window, MaxOutput: window / 8}),
		writer: llmtest.Scripted().WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: 128_000, MaxOutput: 8_000}),
	}
	w.begin()
	w.models = modelsByName{"writer": w.writer, "answerer": w.model}
	w.profile = compaction.Profile{
		Agent: core.Agent{Name: "tester"}, Policy: policy, Model: w.model,
		SystemPrompt: "You are a tester.", ToolUsage: "Use the tools.", Tools: toolSpecs(),
	}
	w.options = compaction.Options{
		Stores: compaction.Stores{Sessions: w.db.Sessions, Messages: w.db.Messages, Summaries: w.db.Summaries, Runs: w.db.Runs},
		Models: w.models, LoadProfile: w.Profile, Counter: count, Calibrator: w.ruler, Publisher: w.feed,
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

// begin goes on with another session, of whose lists the newest messages have their texts.
func (w *world) begin() {
	w.Conversation = w.db.AddConversation(core.Session{Owner: core.LocalOwner, UserID: "ann", Agent: "tester"})
	w.WithTexts, w.run = 4, core.Run{}
}

// add appends messages to the log.
func (w *world) add(messages ...core.Message) { w.db.Say(w.Session.ID, messages...) }

// now returns the session, the versions of its summary and its log.
func (w *world) now() (session core.Session, summaries []core.Summary, log []core.Message) {
	w.db.Edit(func() { session, summaries, log = w.Session, slices.Clone(w.Summaries), slices.Clone(w.Messages) })
	return session, summaries, log
}

// ask ends the run in progress and begins another: its message is in the log.
func (w *world) ask(content string) {
	w.endRun()
	w.run = *w.db.StartRun(w.Session.ID, core.RunInput{Content: content, TokenCount: w.said(core.RoleUser, content).TokenCount})
}

// endRun ends the run in progress, if there is one.
func (w *world) endRun() {
	if w.run.ID != "" {
		w.db.EndRun(w.run.ID)
	}
	w.run = core.Run{}
}

// turn returns what the next model call depends on, as retrieve_context loads it.
func (w *world) turn() compaction.Turn {
	session, _, log := w.now()
	t := compaction.Turn{Session: session, Profile: w.profile, RunID: w.run.ID}
	for i, m := range log {
		if w.WithTexts > 0 && i < len(log)-w.WithTexts {
			m = m.WithoutTexts()
		}
		switch {
		case m.Seq <= session.SummaryThroughSeq && m.Pinned:
			t.Pinned = append(t.Pinned, m)
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
	must.Do(w.t, err)
	if d.Summarize != nil || d.Floor != nil || d.Total > d.Budget.Usable {
		w.t.Fatalf("decision %+v, want a prompt that fits", d)
	}
	return turn, d
}

// request is Request, which must succeed.
func (w *world) request(turn compaction.Turn, d contextwindow.Decision) llm.Request {
	w.t.Helper()
	req, sent, err := w.keeper.Request(w.t.Context(), turn, d)
	must.Do(w.t, err)
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
		n += tokens.Prompted(w.count.Text, m)
	}
	return n
}

// report is Report, which must succeed and lose nothing.
func (w *world) report() core.ContextReport {
	w.t.Helper()
	r := must.Get(w.control().Report(w.t.Context(), w.scope(), w.Session.ID))(w.t)
	compare.Equal(w.t, "coverage: want none lost", 0, r.Coverage.Lost)
	return r
}

// control returns an Inspector over the world's keeper.
func (w *world) control() *compaction.Inspector {
	return &compaction.Inspector{Compactor: w.keeper, Preset: func(name string) (contextwindow.Policy, error) {
		return contextwindow.Resolve(contextwindow.Global{}, core.ContextSettings{Policy: name})
	}}
}

func (w *world) scope() core.Tenant { return core.Tenant{Owner: w.Session.Owner} }

// notes is an answer that may be stored as a summary.
const notes = "## Goal\nTest the tester.\n\n## Facts\n- turn 1 happened, and each turn after it said the same few words again.\n" +
	"- Nothing else was asked for, and the user wants no change of that until tomorrow.\n\n## Decisions\n- The tester goes on in the same manner; " +
	"every answer stays short, no tool is needed for it, and nobody else takes part.\n\n## Done and open\n- Done: what was said so far. Open: how many turns there are to be, " +
	"whether a longer test comes after this one, and who reads what comes out of it."

// shortNotes may be stored as the summary of a few short messages.
const shortNotes = "## Goal\nTest the tester.\n\n## Facts\n- turn 1 happened, and two or three more of them that said the same few words again; nothing else was asked for."

// always is a step that answers every request with the text.
func always(text string) llmtest.Step { return llmtest.Step{Text: []string{text}, Repeat: true} }

// useCounter replaces what counts the texts.
func (w *world) useCounter(c llm.TokenCounter) {
	w.options.Counter = c
	w.keeper = compaction.New(w.options)
}

// What a prompt has in common with that of the last model call is known from what is stored: it only grew, or
// it differs from a part on.
func TestUnchangedSinceTheLastCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(2, 20)
	if got := w.view().Unchanged; got != nil {
		t.Errorf("before the first call: got %+v, want nothing", got)
	}
	run := w.db.StartRun(w.Session.ID, core.RunInput{Content: "and then?", TokenCount: w.said(core.RoleUser, "and then?").TokenCount})
	w.run = *run
	turn, d := w.fit()
	report := w.report()
	report.Digests = w.request(turn, d).Digests()
	w.db.Edit(func() { run.Context = must.Get(json.Marshal(report))(t) })
	parts := 1 + len(w.view().System) + 5 // the tools, the blocks, the messages
	check := func(what string, want core.UnchangedParts) {
		t.Helper()
		got := w.view().Unchanged
		if got == nil || got.RunID != w.run.ID || got.At.IsZero() {
			t.Fatalf("%s: got %+v, want a comparison with run %s", what, got, w.run.ID)
		}
		if want.RunID, want.At = got.RunID, got.At; *got != want {
			t.Errorf("%s: got %+v, want %+v", what, *got, want)
		}
	}
	sent := w.view().Tokens
	check("the same prompt", core.UnchangedParts{Parts: parts, OfParts: parts, Tokens: sent})
	w.called("1", "42")
	check("an answer more", core.UnchangedParts{Parts: parts, OfParts: parts, Tokens: sent})
	before := 0
	for _, m := range w.view().Messages[1:] {
		before += m.Tokens
	}
	whole := w.view().Tokens
	w.db.Edit(func() { w.Messages[1].Content = "edited" })
	check("the second message edited", core.UnchangedParts{Parts: parts - 4, OfParts: parts, Tokens: whole - before})
	w.profile.SystemPrompt = "You are somebody else."
	if got := w.view().Unchanged; got.Parts != 1 || got.Tokens >= sent {
		t.Errorf("another system prompt: got %+v, want the tools alone", got)
	}
}
