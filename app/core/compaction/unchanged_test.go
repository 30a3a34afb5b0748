package compaction_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
)

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
