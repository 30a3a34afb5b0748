package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// whereAll checks that where each message is adds up to the session's coverage.
func whereAll(t testing.TB, c *client.Client, id core.SessionID) map[core.Placement]int {
	t.Helper()
	page, err := c.Messages(t.Context(), id, core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}, AllBranches: true})
	if err != nil {
		t.Fatal(err)
	}
	got := map[core.Placement]int{}
	for _, m := range page.Items {
		w, err := c.Where(t.Context(), id, m.ID)
		if err != nil {
			t.Fatal(err)
		}
		if w.Seq != m.Seq || w.TokenCount != m.TokenCount || w.Reason == "" {
			t.Errorf("message #%d: got %+v", m.Seq, w)
		}
		got[w.Placement]++
	}
	r := contextOf(t, c, id)
	if got[core.PlaceCovered] != r.Coverage.Summarized || got[core.PlaceVerbatim] != r.Coverage.Verbatim || got[core.PlaceExcluded] > r.Coverage.Excluded {
		t.Errorf("one by one %v, together %+v", got, r.Coverage)
	}
	return got
}

// completed waits for the context.completed of the trigger.
func completed(t testing.TB, feed <-chan core.Event, trigger string) core.ContextData {
	t.Helper()
	return apptest.EventData[core.ContextData](t, until(t, feed, "context.completed by "+trigger, func(e core.Event) bool {
		return e.Type == core.EventContextCompleted && apptest.EventData[core.ContextData](t, e).Trigger == trigger
	}))
}

// Where a message is, dry runs, edit, diff and undo over HTTP, and that
// another client sees them.
func TestControl(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p), apptest.WithModel("tiny", 3000, 500, p))
		id, w, ctx := apptest.NewSession(t, h.Client, core.Session{}), apptest.NewWriter(5), t.Context()
		watch, stop := context.WithCancel(ctx)
		defer stop()
		feed := follow(watch, t, h.Client, id)
		for n := range 16 {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Note %d. ", n) + w.Sentences(5)})
			if n == 5 || n == 11 {
				if _, err := h.Summarize(ctx, id, ""); err != nil {
					t.Fatal(err)
				}
			}
		}
		log := apptest.ListMessages(t, h.Client, id)
		if got := whereAll(t, h.Client, id); got[core.PlaceCovered] == 0 || got[core.PlaceVerbatim] == 0 {
			t.Fatalf("got %v, want some covered", got)
		}
		if got, err := h.Where(ctx, id, log[0].ID); err != nil || got.SummaryVersion != 2 || got.FirstVersion != 1 {
			t.Errorf("got %+v and %v, want it covered by version 2, first by 1", got, err)
		}
		dryRuns(t, h.Client, id)
		edits(t, h.Client, id, feed)
		undo(t, h.Client, id, log, feed)
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And on."})
		contextOf(t, h.Client, id)
	})
}

// dryRuns plans for other conditions.
func dryRuns(t *testing.T, c *client.Client, id core.SessionID) {
	t.Helper()
	ctx, before := t.Context(), session(t, c, id)
	now := contextOf(t, c, id)
	plan, err := c.DryRun(ctx, id, core.PlanPreview{})
	if err != nil || plan.Tokens != now.Used || plan.Context.Used != now.Used || !plan.Fits || plan.Summarize != nil {
		t.Errorf("as it is: got %+v and %v, want %d tokens", plan, err, now.Used)
	}
	if plan, err = c.DryRun(ctx, id, core.PlanPreview{Content: strings.Repeat("many more words ", 1600)}); err != nil || plan.Summarize == nil || !plan.Fits {
		t.Errorf("a long message: got %+v and %v, want a summary", plan, err)
	}
	if plan, err = c.DryRun(ctx, id, core.PlanPreview{Model: "tiny", Policy: "sliding"}); err != nil || plan.Context.Model != "tiny" || plan.Context.Policy != "sliding" {
		t.Errorf("elsewhere: got %+v and %v, want another model and policy", plan.Context, err)
	}
	_, err = c.DryRun(ctx, id, core.PlanPreview{Policy: "slidding"})
	wantProblem(t, err, core.ErrInvalid, 422, "did you mean sliding?")
	_, err = c.DryRun(ctx, id, core.PlanPreview{Model: "nobody's"})
	wantProblem(t, err, core.ErrInvalid, 422, "model cannot be used")
	_, err = c.DryRun(ctx, core.NewID[core.SessionID](), core.PlanPreview{})
	wantProblem(t, err, core.ErrNotFound, 404, "does not exist")
	if after := session(t, c, id); after.SummaryVersion != before.SummaryVersion || after.UpdatedAt != before.UpdatedAt {
		t.Errorf("a dry run has changed the session: %+v", after)
	}
}

// edits replaces the words of version 2 and looks at the difference.
func edits(t *testing.T, c *client.Client, id core.SessionID, feed <-chan core.Event) {
	t.Helper()
	ctx := t.Context()
	was, err := c.Summary(ctx, id, 2)
	if err != nil {
		t.Fatal(err)
	}
	const more = "\nThe seal was ordered on a Friday."
	got, err := c.EditSummary(ctx, id, core.SummaryEdit{Content: was.Content + more, Version: 2})
	if err != nil || got.Version != 3 || got.ThroughID != was.ThroughID || got.Trigger != core.TriggerManualEdit || got.State != core.SummaryActive {
		t.Fatalf("got %+v and %v, want version 3 with the same cursor", got, err)
	}
	if told := completed(t, feed, core.TriggerManualEdit); told.Version != 3 || told.TokensAfter <= told.TokensBefore {
		t.Errorf("got told %+v, want version 3, larger", told)
	}
	prompt, err := c.Prompt(ctx, id)
	if err != nil || !strings.Contains(strings.Join(prompt.System, "\n"), strings.TrimSpace(more)) {
		t.Errorf("got the prompt %q and %v, want the new words in it", prompt.System, err)
	}
	if d, err := c.DiffSummary(ctx, id, 3, -1); err != nil || d.Against != 2 || d.Removed > 1 || d.Added == 0 || d.Equal == 0 {
		t.Errorf("got the diff %+v and %v, want one line more", d, err)
	}
	if d, err := c.DiffSummary(ctx, id, 3, 0); err != nil || d.Against != 0 || d.Removed+d.Equal > 0 {
		t.Errorf("got the diff %+v and %v, want all of it new", d, err)
	}
	_, err = c.EditSummary(ctx, id, core.SummaryEdit{Content: "late", Version: 2})
	wantProblem(t, err, core.ErrConflict, 409, "version 3")
	_, err = c.EditSummary(ctx, id, core.SummaryEdit{Content: "  "})
	wantProblem(t, err, core.ErrInvalid, 422, "is empty")
	_, err = c.EditSummary(ctx, id, core.SummaryEdit{Content: strings.Repeat("too long ", 3000)})
	wantProblem(t, err, core.ErrInvalid, 422, "shorten it")
	_, err = c.EditSummary(ctx, apptest.NewSession(t, c, core.Session{}), core.SummaryEdit{Content: "words"})
	wantProblem(t, err, core.ErrUnprocessable, 422, "there is no summary")
	_, err = c.DiffSummary(ctx, id, 9, 0)
	wantProblem(t, err, core.ErrNotFound, 404, "version 9")
}

// undo goes back to version 1, to nothing, and on to version 3 again.
func undo(t *testing.T, c *client.Client, id core.SessionID, log []core.Message, feed <-chan core.Event) {
	t.Helper()
	ctx := t.Context()
	first, err := c.Summary(ctx, id, 1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.RestoreSummary(ctx, id, 1)
	if err != nil || got.SummaryVersion != 4 || *got.SummaryThroughID != first.ThroughID || *got.ConversationSummary != first.Content {
		t.Fatalf("got %+v and %v, want version 4, which repeats the first", got, err)
	}
	if told := completed(t, feed, core.TriggerRestore); told.Version != 4 || told.TokensAfter <= told.TokensBefore || told.Reason != "repeats version 1" {
		t.Errorf("got told %+v, want version 4", told)
	}
	whereAll(t, c, id)
	if w, err := c.Where(ctx, id, log[first.ThroughSeq].ID); err != nil || w.Placement != core.PlaceVerbatim {
		t.Errorf("got %+v and %v, want what is behind the cursor word for word", w, err)
	}
	if got, err = c.RestoreSummary(ctx, id, 0); err != nil || got.SummaryVersion != 0 || got.SummarizedCount != 0 || got.ConversationSummary != nil {
		t.Errorf("got %+v and %v, want no summary", got, err)
	}
	if told := completed(t, feed, core.TriggerRestore); told.Version != 0 || told.MessagesCovered != 0 {
		t.Errorf("got told %+v, want that nothing is covered", told)
	}
	if got := whereAll(t, c, id); got[core.PlaceVerbatim] != len(log) {
		t.Errorf("got %v, want all %d messages word for word", got, len(log))
	}
	if old, err := c.Summary(ctx, id, 3); err != nil || old.State != core.SummaryUndone {
		t.Errorf("got version 3 %s and %v, want it undone", old.State, err)
	}
	if got, err = c.RestoreSummary(ctx, id, 3); err != nil || got.SummaryVersion != 5 {
		t.Errorf("got version %d and %v, want the undo undone", got.SummaryVersion, err)
	}
	_, err = c.RestoreSummary(ctx, id, 9)
	wantProblem(t, err, core.ErrNotFound, 404, "version 9")
	if err := c.DeleteMessage(ctx, id, log[1].ID); err != nil {
		t.Fatal(err)
	}
	_, err = c.RestoreSummary(ctx, id, 3)
	wantProblem(t, err, core.ErrUnprocessable, 422, "was deleted")
	_, err = c.DiffSummary(ctx, id, 3, 0)
	wantProblem(t, err, core.ErrUnprocessable, 422, "was deleted")
	if w, err := c.Where(ctx, id, log[1].ID); err != nil || w.Placement != core.PlaceExcluded || !strings.Contains(w.Reason, "deleted") {
		t.Errorf("got %+v and %v, want it excluded as deleted", w, err)
	}
}
