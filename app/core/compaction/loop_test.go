package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// looping returns a world whose agent compacts its tool loops with the rules of L1,
// however small the prompt is.
func looping(t *testing.T, settings core.CompactionSettings, window int) *world {
	t.Helper()
	settings.MinTokens = new(0)
	w := newWorld(t, core.ContextSettings{Strategy: new("llm")}, window)
	loop := must.Get(contextwindow.ResolveLoop("", settings))(t)
	w.profile.Loop = loop
	return w
}

// use puts a tool round into the log of the run in progress, whose results have about
// that many tokens each.
func (w *world) use(sizes ...int) {
	w.t.Helper()
	_, _, log := w.now()
	call := core.Message{Role: core.RoleAssistant, Status: core.MessageComplete, RunID: w.run.ID}
	for i := range sizes {
		call.ToolCalls = append(call.ToolCalls, core.ToolCall{
			ID: fmt.Sprintf("call-%d-%d", len(log), i), Name: "read_file", Arguments: fmt.Sprintf(`{"path":"src/file%d.go"}`, len(log)),
		})
	}
	call.TokenCount = w.count.Message(call)
	w.add(call)
	for i, size := range sizes {
		m := w.said(core.RoleTool, fmt.Sprintf("result %d of #%d: ", i, len(log)+1)+strings.Repeat("text ", size))
		m.RunID, m.ToolCallID, m.ToolName = w.run.ID, call.ToolCalls[i].ID, "read_file"
		w.add(m)
	}
}

// readFiles begins a run and has it read as many files as have notes made.
func (w *world) readFiles() {
	w.ask("Read all files.")
	for range 8 {
		w.use(200)
	}
}

// loopNotes is an answer that may be stored as notes.
const loopNotes = "## Current state\nThe files were read.\n\n## Files\nsrc/file3.go, src/file5.go, src/file7.go, src/file9.go, src/file11.go (#10, #12; [11], [12], [13]): " +
	"the same text over and over, forty pieces of it apiece; neither fault nor warning came to light. Unread: whatever comes after #13."

// L2, L3, L4, L6: after the eighth round a model writes notes on the older ones, which
// stand in the prompt from then on; it is stored and reported with its effect.
func TestLoopIsCompacted(t *testing.T) {
	t.Parallel()
	w := looping(t, core.CompactionSettings{}, 128_000)
	w.writer = llmtest.Scripted(loopNotes, loopNotes+"\n- src/file14.go to src/file28.go were read as well.").WithInfo(w.writer.Info())
	w.models["writer"] = w.writer
	w.turns(1, 20)
	w.ask("Read all files.")
	for range 7 {
		w.use(300)
	}
	if _, d := w.fit(); len(d.Loops) > 0 || len(w.writer.Requests()) > 0 {
		t.Fatalf("got notes %+v after seven rounds, want none", d.Loops)
	}
	w.use(300)
	before := w.report()
	compare.Contains(t, "reasons before the notes", "the next model call first replaces the oldest 10 messages of the tool loop", strings.Join(before.Reasons, "\n"))
	turn, d := w.fit()
	req := w.request(turn, d)
	if n := len(req.Messages); n != 2+1+1+6 || req.Messages[3].Role != core.RoleUser || !strings.Contains(req.Messages[3].Content, "The files were read.") {
		t.Errorf("got %d messages, the fourth %+v, want notes behind the question", n, req.Messages[3])
	}
	if w.Session.SummaryVersion != 0 || len(w.Summaries) != 1 {
		t.Fatalf("got %d summaries, version %d of the session's, want notes alone", len(w.Summaries), w.Session.SummaryVersion)
	}
	got := w.Summaries[0]
	want := core.Summary{
		ID: got.ID, SessionID: w.Session.ID, Owner: w.Session.Owner, Version: 1, Kind: core.SummaryRun, State: core.SummaryActive, Content: loopNotes,
		FromID: w.Messages[3].ID, ThroughID: w.Messages[12].ID, FromSeq: 4, ThroughSeq: 13, MessagesCovered: 10, MessagesAdded: 10,
		TokensBefore: got.TokensBefore, TokensAfter: w.count.Text(loopNotes), TokenCount: w.count.Text(loopNotes), Model: "writer", Strategy: "llm", Trigger: "iterations",
		MadeFor:  93_090, // the trigger, 0.8 · 128,000, by an estimate that is not measured
		Duration: got.Duration, CreatedAt: got.CreatedAt, ActivatedAt: got.ActivatedAt,
	}
	compare.Equal(t, "notes", want, got)
	after := w.report()
	told := core.ContextData{
		Kind: core.SummaryRun, Trigger: "iterations", MessagesBefore: 2 + 1 + 16, MessagesAfter: 10, MessagesCovered: 10, Version: 1,
		TokensBefore: before.Planned, TokensAfter: after.Planned,
	}
	if diff := cmp.Diff(told, coretest.Data[core.ContextData](w.Events[0])); diff != "" || w.Events[0].Type != core.EventContextCompleted || len(w.feed.Published()) != 1 {
		t.Errorf("%s %v (-want +got):\n%s", w.Events[0].Type, coretest.Types(w.feed.Published()), diff)
	}
	if c := after.Coverage; c.Compacted != 10 || c.Verbatim != 9 || c.Messages != 19 {
		t.Errorf("coverage %+v, want 10 in notes and 9 as they are", c)
	}
	w.checkCompactor(w.writer.Requests()[0])

	for range 8 { // the next at 16: it extends the notes with what they have not read
		w.use(300)
	}
	w.fit()
	second := w.Summaries[1]
	if second.FromSeq != 4 || second.ThroughSeq != 29 || second.MessagesCovered != 26 || second.MessagesAdded != 16 || w.Summaries[0].State != core.SummaryDropped {
		t.Errorf("got %+v, the first is %s", second, w.Summaries[0].State)
	}
	material := w.writer.Requests()[1].Messages[0].Content
	for text, in := range map[string]bool{"The files were read.": true, "result 0 of #12:": false, "result 0 of #14:": true, "[13] tool": false, "Read all files.": true} {
		if strings.Contains(material, text) != in {
			t.Errorf("the material of the second has %q: %v, want %v", text, !in, in)
		}
	}
}

// checkCompactor checks what the model was sent. L4, L5.
func (w *world) checkCompactor(req llm.Request) {
	w.t.Helper()
	compare.Equal(w.t, "tools and messages: want one message", []int{0, 1}, []int{len(req.Tools), len(req.Messages)})
	for _, want := range []string{"files that were read or modified", "Leave out: raw file contents"} {
		compare.Contains(w.t, fmt.Sprintf("the compactor is not told %q", want), want, req.System[0])
	}
}

// L1: the model that writes the notes is compaction.summary_model, else the agent's
// summary model, else rules make them: where no model can be had, and for agents that
// summarize without one.
func TestLoopModel(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name               string
		loop               string
		policy             core.ContextSettings
		want, strategy     string
		note               string
		broke, unavailable bool
	}{
		{name: "its own", loop: "small", policy: core.ContextSettings{SummaryModel: new("big")}, want: "small", strategy: "llm"},
		{name: "the agent's summary model", policy: core.ContextSettings{SummaryModel: new("big")}, want: "big", strategy: "llm"},
		{name: "the default", want: "writer", strategy: "llm"},
		{name: "gone", loop: "nobody", strategy: "steps", note: "fallback: the summary model cannot be used"},
		{name: "no money", broke: true, strategy: "steps", note: "fallback: the spend limit of the day is reached"},
		{name: "an agent without one", policy: core.ContextSettings{Strategy: new("extractive")}, strategy: "steps"},
		{name: "an agent without one, but for loops", loop: "small", policy: core.ContextSettings{Strategy: new("extractive")}, want: "small", strategy: "llm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := looping(t, core.CompactionSettings{SummaryModel: &tt.loop}, 128_000)
			for _, name := range []string{"small", "big", "writer"} {
				w.models[name] = llmtest.Scripted(loopNotes).WithInfo(llm.Info{Name: name, Provider: "scripted", Window: 32_000})
			}
			w.models[preferred(llm.PreferDefault, "answerer")] = w.models["writer"]
			policy := must.Get(contextwindow.Resolve(contextwindow.Global{}, tt.policy))(t)
			w.profile.Policy = policy
			if tt.broke {
				w.options.Budget = poor
				w.keeper = compaction.New(w.options)
			}
			w.readFiles()
			w.fit()
			got := w.Summaries[0]
			if got.Model != tt.want || got.Strategy != tt.strategy || got.Note != tt.note {
				t.Errorf("got model %q, strategy %q, note %q; want %q, %q, %q", got.Model, got.Strategy, got.Note, tt.want, tt.strategy, tt.note)
			}
		})
	}
}

// poor may spend nothing.
func poor(context.Context, string, llm.Info) error {
	return errors.New("nothing left")
}

// failNotes lets the material of the next notes not be loaded.
func (w *world) failNotes() {
	failed := false
	w.db.Before(func(call string) error {
		if call == "GetMessages" && !failed {
			failed = true
			return errors.New("secret detail")
		}
		return nil
	})
}

// L3: where notes cannot be made, the run continues; watchers are notified.
func TestLoopFailureDoesNotFailTheRun(t *testing.T) {
	t.Parallel()
	w := looping(t, core.CompactionSettings{}, 128_000)
	w.failNotes()
	w.readFiles()
	_, d := w.fit()
	compare.Equal(t, "messages and summaries: want the loop as it is", []int{17, 0}, []int{d.Messages(), len(w.Summaries)})
	told := coretest.Data[core.ContextData](w.Events[0])
	if w.Events[0].Type != core.EventContextFailed || told.Kind != core.SummaryRun || told.Reason == "" || strings.Contains(told.Reason, "secret") {
		t.Errorf("got %s %+v, want a failure with a reason for everybody", w.Events[0].Type, told)
	}
}

// L3: the model has 10 seconds; then rules make the notes.
func TestLoopTimeLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := looping(t, core.CompactionSettings{}, 128_000)
		gate := llmtest.NewGate()
		w.models["writer"] = llmtest.Scripted(llmtest.Step{Text: []string{loopNotes}, Gate: gate}).WithInfo(w.writer.Info())
		w.readFiles()
		start := time.Now()
		w.fit()
		if got := w.Summaries[0]; got.Strategy != "steps" || !strings.Contains(got.Note, "time limit (10s)") || time.Since(start) != 10*time.Second {
			t.Errorf("got %s notes (%s) after %s", got.Strategy, got.Note, time.Since(start))
		}
	})
}

// I7: what a plan masks before it asks for notes that fail is stored with the prompt.
func TestLoopFailureStoresMasking(t *testing.T) {
	t.Parallel()
	w := looping(t, core.CompactionSettings{ThresholdIterations: new(9), KeepRecentIterations: new(1)}, 16_000)
	w.profile.Policy.AutoSummarize = false
	w.failNotes()
	w.turns(5, 500)
	w.ask("Read the first file.")
	w.use(5_000)
	w.ask("Read the others.")
	for range 4 {
		w.use(1_200)
	}
	req := w.request(w.fit())
	if types := coretest.Types(w.Events); len(types) == 0 || types[0] != core.EventContextFailed {
		t.Fatalf("got events %v, want notes that fail", types)
	}
	masked := slices.ContainsFunc(req.Messages, func(m llm.Message) bool { return strings.Contains(m.Content, "masked") })
	state, err := contextwindow.DecodeState(w.Session.PromptState)
	if err != nil || !masked || state.MaskedThrough == 0 {
		t.Errorf("masked in the prompt: %v; stored: %+v, %v", masked, state, err)
	}
}

// script returns a model of the name that answers with it.
func script(name, provider string) *llmtest.Script {
	return llmtest.Scripted(always(notes + "\nwritten by " + name)).
		WithInfo(llm.Info{Name: name, Provider: provider, Window: 128_000, MaxOutput: 8_000})
}

// pricing refuses the models without a price, as a limit in US dollars does.
type pricing []string

func (p pricing) check(_ context.Context, _ string, m llm.Info) error {
	if slices.Contains(p, m.Name) {
		return nil
	}
	return core.ErrModelUnpriced(m.Name)
}

// W8: who writes the summary: the model that the agent's file names, then the
// global one, then what the preset prefers of the agent's provider (its small model or
// default_llm), then the model that answers. The conversation goes to no other provider. A limit in US dollars
// leaves out a small model without a price. Where no model has one, or the named one is missing, the summary is
// made without any, and says why (B7).
func TestSummaryModelPrecedence(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		policy string
		agent  *string
		global string
		beside llm.Preference // what there is of the agent's provider
		priced pricing        // nil = no limit
		want   string         // a model, or the note of a summary without one
	}{
		{"agent over all", "sliding", new("own"), "global", llm.PreferSmall, nil, "own"},
		{"global", "sliding", nil, "global", llm.PreferSmall, nil, "global"},
		{"default_llm", "window", nil, "", llm.PreferDefault, nil, "default"},
		{"small", "sliding", nil, "", llm.PreferSmall, nil, "small"},
		{"small", "ratio", nil, "", llm.PreferSmall, nil, "small"},
		{"agent's empty name over the global one", "window", new(""), "global", llm.PreferDefault, nil, "default"},
		{"its own", "window", nil, "", llm.PreferSmall, nil, "answerer"},
		{"its own", "budget", nil, "", llm.PreferDefault, nil, "answerer"},
		{"its own", "sliding", nil, "", llm.PreferDefault, nil, "answerer"},
		{"its own", "ratio", nil, "", llm.PreferOwn, nil, "answerer"},
		{"all have prices", "sliding", nil, "", llm.PreferSmall, pricing{"small", "answerer"}, "small"},
		{"its own has a price", "sliding", nil, "", llm.PreferSmall, pricing{"answerer"}, "answerer"},
		{"none has a price", "sliding", nil, "", llm.PreferSmall, pricing{}, "fallback: the summary model has no price, and a limit in US dollars holds"},
		{"missing", "sliding", new("nobody"), "", llm.PreferSmall, nil, "fallback: the summary model cannot be used"},
	} {
		t.Run(tt.policy+" "+tt.name, func(t *testing.T) {
			t.Parallel()
			settings := core.ContextSettings{Policy: tt.policy, SummaryModel: tt.agent}
			w := newWorld(t, settings, 8192)
			w.profile.Policy = must.Get(contextwindow.Resolve(contextwindow.Global{SummaryModel: tt.global}, settings))(t)
			if tt.priced != nil {
				w.options.Budget = tt.priced.check
				w.keeper = compaction.New(w.options)
			}
			w.model.Add(always(notes + "\nwritten by answerer"))
			w.model.WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: 8192, MaxOutput: 1024})
			for _, name := range []string{"own", "global", ""} { // "" = default_llm, of whatever provider
				w.models[name] = script(name, "scripted")
			}
			if tt.beside != llm.PreferOwn {
				w.models[preferred(tt.beside, "answerer")] = script(string(tt.beside), "scripted")
			}
			w.turns(30, 110)
			w.ask("next")
			w.fit()
			if v := w.Summaries[0]; v.Model+v.Note != tt.want || v.Model != "" && !strings.Contains(v.Content, "written by "+tt.want) {
				t.Errorf("got model %q, note %q, content %q, want %q", v.Model, v.Note, v.Content, tt.want)
			}
			if n := len(w.model.Requests()); n > 0 != (tt.want == "answerer") {
				t.Errorf("the answering model was asked %d times", n)
			}
		})
	}
}

// The agent's parameters hold for answers and not for summaries, and its output limit leaves
// more of the window for the prompt, as the model's own would.
func TestParametersHoldForAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 8_192)
	w.writer.Add(always(notes))
	w.profile.Agent.ModelParameters = core.ModelParameters{
		Temperature: new(1.5), TopP: new(0.5), MaxOutputTokens: 300, Stop: []string{"END"}, Seed: new(1),
		ReasoningEffort: "low", ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject},
	}
	w.turns(30, 110)
	w.ask("what next?")
	turn, d := w.fit()
	compare.Equal(t, "plan: usable tokens and answers of: want 7892 and 300", []int{8_192 - 300, 300}, []int{d.Budget.Usable, d.MaxOutput})
	req, _, err := w.keeper.Request(t.Context(), turn, d)
	must.Do(t, err)
	p := w.profile.Agent.ModelParameters
	got := core.ModelParameters{
		Temperature: req.Temperature, TopP: req.TopP, MaxOutputTokens: req.MaxOutputTokens, Stop: req.Stop, Seed: req.Seed,
		ReasoningEffort: req.ReasoningEffort, ResponseFormat: req.ResponseFormat,
	}
	compare.Equal(t, "parameters of the answer", p, got)
	asked := w.writer.Requests()
	if len(asked) == 0 {
		t.Fatal("got no summary")
	}
	for _, r := range asked {
		if r.TopP != nil || r.Stop != nil || r.Seed != nil || r.ReasoningEffort != "" || r.ResponseFormat != nil || r.MaxOutputTokens == 300 || r.Temperature != nil && *r.Temperature == 1.5 {
			t.Errorf("a summary was asked for with the agent's parameters: %+v", r)
		}
	}

	// A model with a lower limit of its own keeps it.
	w.profile.Model = llmtest.Scripted().WithInfo(llm.Info{Name: "answerer", Provider: "scripted", Window: 8_192, MaxOutput: 200})
	if _, d := w.fit(); d.MaxOutput != 200 {
		t.Errorf("got answers of %d tokens, want the 200 of the model", d.MaxOutput)
	}
}
