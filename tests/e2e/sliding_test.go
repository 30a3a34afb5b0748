package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/dbtest"
	"bobbin/tests/provider"
)

// slidingTurns is how long the conversation is; with BOBBIN_TEST_LONG=1 1,000 turns.
func slidingTurns() int { return sized(220, 1_000) }

// R1: under the policy sliding a prompt of the last turn is as large as one of the
// hundredth, and the summary stays short, whatever its writer does.
func TestShowSliding(t *testing.T) {
	if testing.Short() {
		t.Skip("220 turns take a while")
	}
	said, noted := newWriter(3), newWriter(4)
	var lock sync.Mutex
	p := newProvider(t, provider.Options{Fault: func(w http.ResponseWriter, a provider.Asked) bool {
		if !a.Summary {
			return false
		}
		lock.Lock()
		defer lock.Unlock()
		stream(w, map[string]any{"content": noted.sentences(15 + noted.rand.IntN(25))}, "stop") // 210 to 560 tokens
		return true
	}})
	h := newHouse(t, dbtest.MigratedSQLiteURL(t), withModel("house", 128_000, 4096, p), withAgent("talker",
		"name: talker\nsystem_prompt: You answer.\ncontext:\n  policy: sliding\n  summary_model: house\n"))
	id := newSession(t, h.Client, core.Session{Agent: "talker"})
	feed := follow(t.Context(), t, h.Client, id)
	var prompts, summaries []int
	for n := range slidingTurns() {
		got := say(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Turn %d. %s", n, said.sentences(4+said.rand.IntN(3)))})
		if s := session(t, h.Client, id); s.MessageCount-s.SummarizedCount > 15 { // the user reads the answer meanwhile
			until(t, feed, "summary after the run", func(e core.Event) bool {
				return e.Type == core.EventContextCompleted && data[core.ContextData](t, e).Version > s.SummaryVersion
			})
		}
		r := contextOf(t, h.Client, id)
		prompts = append(prompts, got.run.Usage.InputTokens)
		for _, made := range r.Summaries[:min(1, len(r.Summaries))] {
			summaries = append(summaries, made.TokenCount)
		}
	}
	late := slices.Sorted(slices.Values(prompts[100:]))
	middle, largest := late[len(late)/2], late[len(late)-1]
	flat := float64(largest) / float64(middle)
	if flat > 1.3 {
		t.Errorf("got a prompt of %d tokens, and %d in the middle: want at most 1.3 times as many", largest, middle)
	}
	if len(summaries) < slidingTurns()/2 || slices.Max(summaries) > 500 {
		t.Errorf("got %d reports of a summary with up to %d tokens, want at most 500", len(summaries), slices.Max(summaries))
	}
	s := session(t, h.Client, id)
	if s.MessageCount != 2*slidingTurns() {
		t.Errorf("got %d messages in the log, want %d", s.MessageCount, 2*slidingTurns())
	}
	fig := newTable("%d turns under the policy sliding, messages of 60 to 100 tokens", slidingTurns())
	for _, n := range []int{1, 5, 10, 50, 100, 200, 500, 750, 1_000} {
		if n <= len(prompts) {
			fig.row(fmt.Sprintf("prompt of turn %d", n), prompts[n-1])
		}
	}
	fig.row("after the first 100: smallest", late[0])
	fig.row("after the first 100: median", middle)
	fig.row("after the first 100: largest", largest, fmt.Sprintf("%.2f times the median", flat))
	fig.row("largest summary", slices.Max(summaries), fmt.Sprintf("%d made", s.SummaryCount))
	fig.log(t)
}
