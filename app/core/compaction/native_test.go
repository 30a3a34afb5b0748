package compaction_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// newNativeWorld is a world whose agent has the strategy native, and a model that writes compactions.
func newNativeWorld(t *testing.T) *world {
	t.Helper()
	native := summarize.StrategyNative
	w := newWorld(t, core.ContextSettings{Strategy: &native}, 8192)
	w.answerFor(w.model, "account")
	w.turns(30, 110)
	w.ask("what next?")
	return w
}

// answerFor makes the model answer for an account, as one that writes compactions.
func (w *world) answerFor(model *llmtest.Script, account string) {
	info := model.Info()
	info.ThoughtOrigin, info.Account, info.Compacts = "maker/"+info.Name, account, true
	w.profile.Model = model.WithInfo(info)
}

// own is a compaction.
var own = core.Part{Text: notes, Signature: "signed"}

// compacted is an answer that is a compaction.
func compacted(part core.Part) llmtest.Step {
	part.Type = core.PartCompaction
	return llmtest.Step{Compaction: &part, Usage: &core.Usage{InputTokens: 5000, OutputTokens: 100}}
}

// native returns the native summary with which the next prompt begins; nil = it has the words.
func (w *world) native(turn compaction.Turn) *core.Part {
	w.t.Helper()
	turn, d, err := w.keeper.Fit(w.t.Context(), turn)
	must.Do(w.t, err)
	req := w.request(turn, d)
	words := strings.Contains(req.SystemText(), "<conversation_summary>")
	if first := req.Messages[0]; len(first.Parts) == 1 && first.Parts[0].Type == core.PartCompaction {
		if words {
			w.t.Error("the prompt has the native summary and the words")
		}
		return &first.Parts[0]
	}
	if !words {
		w.t.Error("the prompt has neither a native summary nor words")
	}
	return nil
}

// Where the summary model rests after failures, the provider of the conversation's model is asked all the same.
func TestNativeSummaryWithTheBreakerOpen(t *testing.T) {
	t.Parallel()
	w := newNativeWorld(t)
	until := time.Now().Add(time.Minute)
	w.Breaker = core.Breaker{Failures: core.BreakerFailures, Reason: "the model failed (auth)", Until: &until}
	w.model.Add(compacted(own))
	w.Messages[2].FinishReason, w.Messages[3].Role = core.FinishRefused, core.RoleUser // it has no answer, and may be refused again
	turn, _ := w.fit()
	_, summaries, _ := w.now()
	compare.True(t, !slices.ContainsFunc(w.model.Requests()[0].Messages, func(m llm.Message) bool { return m.Content == w.Messages[2].Content }), "the compaction has the message that was refused")
	if len(summaries) != 1 || summaries[0].Model != "" || summaries[0].Native == nil || len(w.writer.Requests()) > 0 {
		t.Fatalf("got the summaries %+v, want one without the summary model and a native one", summaries)
	}
	compare.Equal(t, "begins the prompt", own.Signature, w.native(turn).Signature)
}

// A limit in US dollars holds for the provider's own summary, too.
func TestNativeSummaryWithoutAPrice(t *testing.T) {
	t.Parallel()
	w := newNativeWorld(t)
	w.options.Budget = pricing{"writer"}.check
	w.keeper = compaction.New(w.options)
	w.writer.Add(always(notes))
	w.fit()
	if len(w.Summaries) != 1 || w.Summaries[0].Native != nil || len(w.model.Requests()) > 0 {
		t.Errorf("got %+v after %d calls of the model, want the words alone", w.Summaries, len(w.model.Requests()))
	}
}

// Prompts of another model, another account, other tools, another system prompt and another strategy
// have the plain words; those of the one that wrote the native summary have it again.
func TestNativeSummaryIsForOneIdentity(t *testing.T) {
	t.Parallel()
	w := newNativeWorld(t)
	w.writer.Add(always(notes))
	w.model.Add(compacted(own))
	w.fit()
	before := w.profile
	for name, change := range map[string]func(){
		"another account": func() { w.answerFor(llmtest.Scripted().WithInfo(before.Model.Info()), "other") },
		"another model": func() {
			info := before.Model.Info()
			info.Name = "another"
			w.answerFor(llmtest.Scripted().WithInfo(info), "account")
		},
		"another system prompt": func() { w.profile.SystemPrompt = "You are another." },
		"other tools":           func() { w.profile.Tools = nil },
		"another strategy":      func() { w.profile.Policy.Strategy = summarize.StrategyLLM },
	} {
		change()
		if got := w.native(w.turn()); got != nil {
			t.Errorf("%s: got a native summary, want the words", name)
		}
		if reason := w.report().SummaryReason; name != "another strategy" && !strings.Contains(reason, "and no native summary: ") {
			t.Errorf("%s: got the reason %q, want why there is no native summary", name, reason)
		}
		if w.profile = before; w.native(w.turn()) == nil {
			t.Errorf("after %s: got the words, want the native summary again", name)
		}
	}
}

// reportsNative fails unless the one report of a native summary since the last call has the outcome.
func (w *watcher) reportsNative(t *testing.T, outcome string) {
	t.Helper()
	if got := w.told(); strings.Count(got, "native_summaries") != 1 || !strings.Contains(got, "native_summaries_total "+outcome+" 1") {
		t.Errorf("got the reports %q, want %s once", got, outcome)
	}
}

// The provider's own summary is stored beside the plain one, in the same commit, and stands in prompts in place of
// its words; both calls are in the books. What the provider does not take back is not sent again: the words take
// its place.
func TestNativeSummaryIsRefused(t *testing.T) {
	t.Parallel()
	w := newNativeWorld(t)
	w.writer.Add(always(notes))
	w.model.Add(compacted(own))
	watch := w.watched()
	turn, _ := w.fit()
	watch.reportsNative(t, compaction.NativeMade)
	if s := w.Summaries; len(s) != 1 || s[0].Native == nil || !strings.Contains(s[0].Content, "Test the tester.") || len(w.Calls) != 2 || w.Calls[0].Model == w.Calls[1].Model {
		t.Fatalf("got the summaries %+v and %d calls, want one with plain words and a native summary, and a call for each", s, len(w.Calls))
	}
	if asked := w.model.Requests()[0]; !asked.Compact || len(asked.Messages) != w.Summaries[0].MessagesCovered {
		t.Errorf("got a request of %d messages, want a compaction of the %d that are covered", len(asked.Messages), w.Summaries[0].MessagesCovered)
	}
	compare.Equal(t, "in the prompt's view: want the native summary", own.Text, w.view().Messages[0].Content)
	refused := must.Get(w.keeper.RefuseNative(t.Context(), turn))(t)
	watch.reportsNative(t, compaction.NativeRefused)
	if w.native(refused) != nil || w.native(w.turn()) != nil {
		t.Error("got the native summary again, want the words")
	}
	if s := w.Summaries[0]; s.Native == nil || s.Native.Refused == "" || s.State != core.SummaryActive {
		t.Errorf("got %+v, want the version in use, with its native summary refused", s)
	}
	if again, err := w.keeper.RefuseNative(t.Context(), turn); err != nil || w.native(again) != nil {
		t.Errorf("refused by a turn that is older: got %v, want the words", err)
	}
}

// A compaction that fails, is empty, too large or no summary of the messages is not used: the version
// has its words, as without the strategy.
func TestNativeSummaryFails(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]any{
		"provider away":     llmtest.Fail(&llm.Error{Kind: llm.KindOverloaded}),
		"blob refused":      llmtest.Fail(&llm.Error{Kind: llm.KindCompactionRefused}),
		"nothing":           llmtest.Say(),
		"an answer":         "I cannot do that.",
		"empty":             compacted(core.Part{}),
		"not about it":      compacted(core.Part{Text: "The weather in Vienna was fine all day long. People went to the river, ate ice cream and came home late in the evening, tired and happy.", Signature: "signed"}),
		"as long as before": compacted(core.Part{Text: strings.Repeat(notes, 40), Signature: "signed"}),
		"blob of 4 MiB":     compacted(core.Part{Text: notes, Signature: strings.Repeat("blob", 1<<20)}),
		"with a NUL":        compacted(core.Part{Text: notes + "\x00", Signature: "signed"}),
		"a blob with a NUL": compacted(core.Part{Text: notes, Signature: "blob\x00"}),
		"with a secret":     compacted(core.Part{Text: notes + " The key is sk-abcdefghij0123456789", Signature: "signed"}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNativeWorld(t)
			w.writer.Add(always(notes))
			w.model.Add(step)
			watch, outcome := w.watched(), compaction.NativeRejected
			if slices.Contains([]string{"provider away", "blob refused", "nothing", "an answer", "empty"}, name) {
				outcome = compaction.NativeFailed
			}
			turn, _ := w.fit()
			watch.reportsNative(t, outcome)
			if w.native(turn) != nil {
				t.Error("got a native summary, want the words")
			}
			if _, summaries, _ := w.now(); len(summaries) != 1 || summaries[0].Native != nil || summaries[0].Note != "" {
				t.Errorf("got %+v, want one version without a native summary", summaries)
			}
		})
	}
}

// A compaction extends the one before it, behind the same system prompt; where that is not valid, it
// extends the words, which are a message then.
func TestNativeSummaryExtendsTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]bool{"native": false, "words": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNativeWorld(t)
			w.writer.Add(always(notes))
			w.model.Add(compacted(core.Part{Text: notes, Signature: "first"}), compacted(core.Part{Text: notes, Signature: "second"}))
			turn, _ := w.fit()
			if refuse {
				must.Get(w.keeper.RefuseNative(t.Context(), turn))(t)
			}
			w.turns(16, 110)
			w.ask("and then?")
			if got := w.native(w.turn()); got == nil || got.Signature != "second" {
				t.Errorf("got %+v, want the second compaction", got)
			}
			asked := w.model.Requests()
			first, extended := asked[1].Messages[0], "first"
			if refuse {
				extended = ""
			}
			if got := first.Parts; len(got) > 0 != (extended != "") || extended != "" && got[0].Signature != extended {
				t.Errorf("got %+v at the beginning of the second request, want the first compaction: %v", got, !refuse)
			}
			if refuse && !strings.Contains(first.Content, "<conversation_summary>") {
				t.Errorf("got %q at the beginning of the second request, want the words", first.Content)
			}
			if !slices.Equal(asked[0].System, asked[1].System) {
				t.Errorf("got the system prompts %q and %q, want the same", asked[0].System, asked[1].System)
			}
		})
	}
}

// storedSetups are the setups that changes of a session's context store.
type storedSetups struct {
	core.SessionStore

	setups []core.PromptSetup
}

// ApplyContext stores the setup of a change that is committed.
func (s *storedSetups) ApplyContext(ctx context.Context, tenant core.Tenant, change core.ContextChange) (core.Session, []core.Event, error) {
	session, events, err := s.SessionStore.ApplyContext(ctx, tenant, change)
	if err == nil && change.Setup != nil {
		s.setups = append(s.setups, *change.Setup)
	}
	return session, events, err
}

// Find returns those of the hashes.
func (s *storedSetups) Find(_ context.Context, _ core.Tenant, _ core.SessionID, hashes []string) (found []core.PromptSetup, err error) {
	for _, setup := range s.setups {
		if slices.Contains(hashes, setup.Hash) {
			found = append(found, setup)
		}
	}
	return found, nil
}

// A native summary is prepared, and the agent changes before it is activated: prompts have it, begin with the system
// prompt and the tools with which it was made, and append the current ones. Where they cannot, they have the words.
func TestPreparedNativeSummaryOfAnEarlierAgent(t *testing.T) {
	t.Parallel()
	settings := at("window", "background")
	settings.Strategy = new(summarize.StrategyNative)
	w := newWorld(t, settings, 8192)
	w.answerFor(w.model, "account")
	info := w.profile.Model.Info()
	info.Prefix, info.SystemMessages, info.ToolChanges = llm.PrefixRefuses, true, llm.ToolsChangeable
	w.profile.Model = w.model.WithInfo(info)
	stored := &storedSetups{SessionStore: w.options.Stores.Sessions}
	w.options.Stores.Sessions, w.options.Stores.Setups = stored, stored
	w.turns(near/110, 40)
	w.grow(near)
	w.writer.Add(always(notes))
	w.model.Add(compacted(core.Part{Text: notes, Signature: "signed"}))
	w.bubble(func() {
		w.fit()
		synctest.Wait()
		if len(w.prepared()) != 1 || len(stored.setups) != 1 {
			t.Fatalf("got %d summaries prepared and %d setups stored, want one of each", len(w.prepared()), len(stored.setups))
		}
		w.profile.SystemPrompt = "You are another."
		w.profile.Tools = append(toolSpecs(), llm.ToolSpec{Name: "clock"})
		w.grow(over)
		turn, d := w.fit()
		req, _, err := w.keeper.Request(t.Context(), turn, d)
		must.Do(t, err)
		last := req.Messages[len(req.Messages)-1]
		if len(req.Messages[0].Parts) != 1 || req.System[0] != "You are a tester." || len(req.Tools) != 1 ||
			!strings.Contains(last.Content, "You are another.") || len(last.AddedTools) != 1 || last.AddedTools[0].Name != "clock" {
			t.Errorf("got the prompt %q, %+v … %+v, want the native summary behind the earlier agent, and the change", req.System, req.Messages[0], last)
		}
		w.ruler.Learn("answerer", func(c *core.Calibration) { c.RefusesToolChanges = true })
		if req := w.request(w.fit()); req.System[0] != "You are another." || len(req.Messages[0].Parts) > 0 || !strings.Contains(req.SystemText(), "Test the tester.") {
			t.Errorf("without changes of tools: got %q, want the words", req.System)
		}
		compare.Contains(t, "the reason: want that the tools are others", "other tools", w.report().SummaryReason)
	})
}
