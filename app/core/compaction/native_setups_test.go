package compaction_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/tests/must"
)

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
		w.ruler.LearnToolChangesRefused("answerer")
		if req := w.request(w.fit()); req.System[0] != "You are another." || len(req.Messages[0].Parts) > 0 || !strings.Contains(req.SystemText(), "Test the tester.") {
			t.Errorf("without changes of tools: got %q, want the words", req.System)
		}
		if got := w.report().SummaryReason; !strings.Contains(got, "other tools") {
			t.Errorf("got the reason %q, want that the tools are others", got)
		}
	})
}
