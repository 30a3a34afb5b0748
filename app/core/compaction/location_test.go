package compaction_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/must"
)

// where is Where, which must succeed.
func (w *world) where(id core.MessageID) core.MessageLocation {
	w.t.Helper()
	got := must.Get(w.control().Where(w.t.Context(), w.scope(), w.Session.ID, id))(w.t)
	if got.Reason == "" || !strings.HasSuffix(got.Reason, ".") {
		w.t.Errorf("message #%d: got reason %q, want a sentence", got.Seq, got.Reason)
	}
	return got
}

// "Why does it not know X?": where each message is adds up to the
// coverage, and is what the prompt shows of it, token for token.
func TestWhereAddsUp(t *testing.T) {
	t.Parallel()
	places := map[core.Placement]int{}
	for _, policy := range contextwindow.PresetNames() {
		w := newWorld(t, core.ContextSettings{Policy: policy}, 8192)
		w.writer.Add(always(notes))
		w.turns(30, 110)
		w.Messages[0].Pinned, w.Messages[50].Pinned = true, true
		ask := "compute"
		if policy == "ratio" {
			ask = strings.Repeat("compute ", 7000) // alone more than fits
		}
		w.ask(ask)
		for i := range 3 {
			w.fit()
			w.called(fmt.Sprint(i), strings.Repeat("result ", 2500))
		}
		w.fit()
		view, got := map[core.MessageID]core.PromptMessage{}, core.Coverage{Messages: len(w.Messages)}
		for _, m := range w.view().Messages {
			view[m.MessageID] = m
		}
		for _, m := range w.Messages {
			where := w.where(m.ID)
			places[where.Placement]++
			count(&got, where.Placement)
			p, sent := view[m.ID]
			if sent && (p.Placement != where.Placement || p.Tokens != where.PromptTokens) {
				t.Errorf("%s, message #%d: got %s with %d tokens, the prompt has it %s with %d", policy, m.Seq, where.Placement, where.PromptTokens, p.Placement, p.Tokens)
			}
			if quoted := where.PromptTokens > 0 && !sent; quoted != (m.Pinned && !sent) {
				t.Errorf("%s, message #%d, pinned %v: got %d tokens outside its place", policy, m.Seq, m.Pinned, where.PromptTokens)
			}
			if (where.SummaryVersion > 0) != (where.Placement == core.PlaceCovered) || where.FirstVersion > where.SummaryVersion {
				t.Errorf("%s, message #%d: got %+v", policy, m.Seq, where)
			}
		}
		if want := w.report().Coverage; got != want {
			t.Errorf("%s: one by one %+v, together %+v", policy, got, want)
		}
	}
	for _, p := range []core.Placement{core.PlaceCovered, core.PlaceVerbatim, core.PlaceMasked, core.PlaceLeftOut, core.PlaceShortened} {
		if places[p] == 0 {
			t.Errorf("no message was %s: the case proves nothing of it (%v)", p, places)
		}
	}
}

func count(c *core.Coverage, p core.Placement) {
	counters := map[core.Placement]*int{
		core.PlaceCovered: &c.Summarized, core.PlaceVerbatim: &c.Verbatim, core.PlaceMasked: &c.Masked,
		core.PlaceShortened: &c.Shortened, core.PlaceLeftOut: &c.LeftOut, core.PlaceExcluded: &c.Excluded,
	}
	*counters[p]++
}

// called adds a tool round to the run in progress.
func (w *world) called(id, result string) {
	call := w.said(core.RoleAssistant, "let me see")
	call.RunID, call.ToolCalls = w.run.ID, []core.ToolCall{{ID: id, Name: "calculator", Arguments: "{}"}}
	call.TokenCount = w.count.Message(call)
	got := w.said(core.RoleTool, result)
	got.RunID, got.ToolCallID = w.run.ID, id
	w.add(call, got)
}

// The reasons tell the cases apart, and the versions that cover a message.
func TestWhereSays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(6, 50)
	w.Messages[3].Role = core.RoleSystem
	gone, branch := w.said(core.RoleUser, "gone"), w.said(core.RoleUser, "elsewhere")
	now := core.Now()
	gone.ID, branch.ID = core.NewID[core.MessageID](), core.NewID[core.MessageID]()
	w.add(gone, branch)
	w.Messages[len(w.Messages)-2].DeletedAt, w.Messages[len(w.Messages)-1].OnPath = &now, false
	says := func(id core.MessageID, place core.Placement, words ...string) core.MessageLocation {
		t.Helper()
		got := w.where(id)
		for _, word := range words {
			if got.Placement != place || !strings.Contains(got.Reason, word) {
				t.Errorf("got %s, %q; want %s, %q", got.Placement, got.Reason, place, word)
			}
		}
		return got
	}
	says(w.Messages[0].ID, core.PlaceVerbatim, "Nothing is summarized yet")
	w.another(2, "first")
	w.another(8, "second")
	w.Messages[0].Pinned = true
	if got := says(w.Messages[0].ID, core.PlaceCovered, "Version 2", "version 1 was the first", "pinned"); got.SummaryVersion != 2 || got.FirstVersion != 1 || got.PromptTokens <= got.WholeTokens {
		t.Errorf("got %+v, want covered by 2, first by 1, and quoted", got)
	}
	if got := says(w.Messages[4].ID, core.PlaceCovered, "Version 2"); got.FirstVersion != 2 || got.PromptTokens != 0 || got.TokenCount != w.Messages[4].TokenCount {
		t.Errorf("got %+v, want covered by version 2 alone", got)
	}
	says(w.Messages[9].ID, core.PlaceVerbatim, "after the messages that version 2")
	says(w.Messages[3].ID, core.PlaceExcluded, "never sent")
	says(gone.ID, core.PlaceExcluded, "deleted")
	says(branch.ID, core.PlaceExcluded, "another branch")
	w.ask("and now")
	says(w.Messages[14].ID, core.PlaceVerbatim, "run in progress")
	w.Messages[14].FinishReason = core.FinishRefused
	w.ask("and then")
	says(w.Messages[14].ID, core.PlaceVerbatim, "version 2", "refused it")
	w.Messages[14].FinishReason = core.FinishContentFilter
	says(w.Messages[14].ID, core.PlaceExcluded, "content filter")
}

// Before a summary the note says that the message will be in it, and when nothing can
// be sent it says why.
func TestWhereNotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(30, 115)
	if got := w.where(w.Messages[0].ID); got.Placement != core.PlaceLeftOut || !strings.Contains(got.Note, "The next message first summarizes the oldest ") {
		t.Errorf("got %+v, want a note that it is summarized next", got)
	}
	if got := w.where(w.Messages[59].ID); got.Note != "" {
		t.Errorf("got the note %q for what stays", got.Note)
	}
	w.profile.SystemPrompt = strings.Repeat("word ", 9000)
	w.ask("hello")
	if got := w.where(w.Messages[60].ID); !strings.Contains(got.Note, "Nothing can be sent") || !strings.Contains(got.Note, "system prompt") {
		t.Errorf("got the note %q, want the floor", got.Note)
	}
}

// Of more ranges than a chart needs the oldest are omitted, and counted.
func TestOldestRangesAreOmitted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(core.MaxRanges/2+100, 1)
	w.db.Edit(func() {
		for i := range w.Messages {
			w.Messages[i].Pinned = i%2 == 0
		}
	})
	last := int64(len(w.Messages))
	w.another(last-2, "before")
	got, err := w.control().Turns(t.Context(), w.scope(), w.Session.ID)
	if err != nil || len(got.Ranges) != core.MaxRanges || got.RangesOmitted != 199 || got.Ranges[0].FromSeq != 200 || got.Ranges[core.MaxRanges-1].ThroughSeq != last {
		t.Errorf("got %d ranges and %d omitted, %v; want the newest %d of 1199", len(got.Ranges), got.RangesOmitted, err, core.MaxRanges)
	}
}
