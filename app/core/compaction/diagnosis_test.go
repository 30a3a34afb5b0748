package compaction_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// What the provider says about its cache is with what Bobbin found; alone it counts only if
// something differs.
func TestProviderDiagnosis(t *testing.T) {
	t.Parallel()
	missed, hit := &llm.CacheDiagnosis{Missed: true, Words: "tools_changed"}, &llm.CacheDiagnosis{Words: "cache_hit"}
	edit := func(w *world) {
		w.db.Edit(func() { w.Messages[0].Content = strings.Replace(w.Messages[0].Content, "turn", "week", 1) }) // of as many tokens
	}
	expired := &core.Usage{CacheReadTokens: 10}
	for name, tt := range map[string]struct {
		change    func(w *world)
		usage     *core.Usage
		diagnosis *llm.CacheDiagnosis
		reason    core.CacheReason // empty = no miss
		words     string
	}{
		"nothing":             {nil, nil, nil, "", ""},
		"a hit":               {nil, nil, hit, "", ""},
		"only the provider":   {nil, nil, missed, core.CacheReported, "tools_changed"},
		"expired, both":       {nil, expired, missed, core.CacheReported, "tools_changed"},
		"expired, a hit":      {nil, expired, hit, core.CacheExpired, "cache_hit"},
		"edited":              {edit, nil, missed, core.CacheMessages, "tools_changed"},
		"edited, not known":   {edit, nil, nil, core.CacheMessages, ""},
		"edited, nothing new": {edit, nil, hit, core.CacheMessages, "cache_hit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 128_000)
			w.WithTexts = 0
			w.turns(2, 10)
			w.ask("first")
			w.answered(llm.Response{Usage: &core.Usage{CacheWriteTokens: 400}})
			if tt.change != nil {
				tt.change(w)
			}
			got := w.answered(llm.Response{Usage: tt.usage, Diagnosis: tt.diagnosis})
			if got == nil {
				got = &core.CacheMiss{}
			}
			if got.Reason != tt.reason || got.Provider != tt.words {
				t.Errorf("got the reason %q, and %q of the provider, want %q, %q", got.Reason, got.Provider, tt.reason, tt.words)
			}
		})
	}
}

// Prompts for answers ask for a diagnosis where the model's entry says so, and name the last answer;
// those for summaries do not.
func TestPromptsAskForDiagnoses(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		w := newWorld(t, core.ContextSettings{}, 128_000)
		w.WithTexts = 0
		for _, m := range []*llm.Script{w.model, w.writer} {
			info := m.Info()
			info.CacheDiagnostics = asks
			m.WithInfo(info)
		}
		w.writer.Add(notes)
		w.turns(4, 100)
		w.ask("first")
		for _, previous := range []string{"", "msg_1", "msg_2"} {
			turn, d := w.fit()
			req := w.request(turn, d)
			if !asks {
				previous = ""
			}
			if req.DiagnoseCache != asks || req.PreviousAnswer != previous {
				t.Errorf("%v: got %v, %q, want the answer %q", asks, req.DiagnoseCache, req.PreviousAnswer, previous)
			}
			next := "msg_2"
			if previous == "" {
				next = "msg_1"
			}
			w.answered(llm.Response{ID: next})
		}
		w.endRun()
		w.summarizeNow()
		for _, req := range w.writer.Requests() {
			if req.DiagnoseCache || req.PreviousAnswer != "" {
				t.Errorf("%v: a summary asks for a diagnosis", asks)
			}
		}
	}
}
