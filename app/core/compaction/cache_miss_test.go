package compaction_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// answered sends the turn's prompt, which gets the answer, and returns the cache miss.
func (w *world) answered(res llm.Response) *core.CacheMiss {
	w.t.Helper()
	turn, d := w.fit()
	req := w.request(turn, d)
	marks, miss := w.keeper.ComparePrompt(w.t.Context(), turn, d, req, res)
	w.db.Edit(func() { w.Session.PromptMarks = marks.Encode() })
	return miss
}

// The first part that differs from the session's previous prompt, and why.
func TestCacheMisses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy core.ContextSettings
		change func(w *world)
		usage  *core.Usage // of the second call; the first had 400 tokens in the cache
		want   *core.CacheMiss
	}{
		"the next message": {change: func(*world) {}, usage: &core.Usage{CacheReadTokens: 360}},
		"no usage":         {change: func(*world) {}},
		"less was cached": {change: func(*world) {}, usage: &core.Usage{CacheReadTokens: 359, CacheWriteTokens: 500},
			want: &core.CacheMiss{Part: core.PromptSame, Reason: core.CacheExpired}},
		"other model": {change: func(w *world) { w.profile.Model = w.writer },
			want: &core.CacheMiss{Part: core.PromptModel, Reason: core.CacheOtherModel}},
		"other agent": {change: func(w *world) { w.profile.SystemPrompt = "You are another." },
			want: &core.CacheMiss{Part: core.PromptSystem, Reason: core.CacheConfiguration}},
		"other tools": {change: func(w *world) { w.profile.Tools = nil },
			want: &core.CacheMiss{Part: core.PromptTools, Reason: core.CacheConfiguration}},
		"summary": {change: (*world).summarizeNow,
			want: &core.CacheMiss{Part: core.PromptSystem, Reason: core.CacheCompaction}},
		"summary as a message": {policy: core.ContextSettings{SummaryRole: new("user")}, change: (*world).summarizeNow,
			want: &core.CacheMiss{Part: core.PromptOfMessage, Index: 1, Reason: core.CacheCompaction}},
		"edited": {change: func(w *world) {
			w.db.Edit(func() { w.Messages[3].Content = strings.Replace(w.Messages[3].Content, "turn", "week", 1) })
		},
			want: &core.CacheMiss{Part: core.PromptOfMessage, Index: 4, MessageID: "4", Seq: 4, Reason: core.CacheMessages}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, tt.policy, 128_000)
			w.WithTexts = 0
			w.writer.Add(notes)
			w.turns(4, 100)
			w.ask("first")
			if miss := w.answered(llm.Response{Usage: &core.Usage{CacheWriteTokens: 400}}); miss != nil {
				t.Fatalf("got the miss %+v of a first prompt", miss)
			}
			w.endRun()
			w.add(w.said(core.RoleAssistant, "answer"))
			tt.change(w)
			w.ask("second")
			got := w.answered(llm.Response{Usage: tt.usage})
			if tt.want != nil && tt.want.MessageID != "" {
				tt.want.MessageID = w.Messages[tt.want.Seq-1].ID
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("got another miss (-want +got):\n%s", diff)
			}
			if miss := w.answered(llm.Response{Usage: tt.usage}); miss != nil && miss.Reason != core.CacheExpired {
				t.Errorf("got the miss %+v of the same prompt", miss)
			}
		})
	}
}

// summarizeNow makes a summary.
func (w *world) summarizeNow() {
	w.t.Helper()
	if _, err := w.keeper.Summarize(w.t.Context(), w.scope(), w.Session.ID, ""); err != nil {
		w.t.Fatal(err)
	}
}

// Passages that were recalled for one message are not in the next prompt.
func TestCacheMissOfRecalledPassages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.WithTexts = 0
	w.turns(2, 10)
	w.ask("first")
	turn, d := w.fit()
	req := w.request(turn, d)
	req.Messages = append(req.Messages[:4:4], llm.Message{Role: core.RoleUser, Content: "recalled", Passing: true}, req.Messages[4])
	marks, _ := w.keeper.ComparePrompt(t.Context(), turn, d, req, llm.Response{})
	w.db.Edit(func() { w.Session.PromptMarks = marks.Encode() })
	w.endRun()
	w.ask("second")
	if miss := w.answered(llm.Response{}); miss == nil || miss.Index != 5 || miss.Seq != 5 || miss.Reason != core.CacheRecalled {
		t.Errorf("got the miss %+v, want message 5, recalled", miss)
	}
}
