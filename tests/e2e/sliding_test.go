package e2e_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// slidingTurns is how long the conversation is.
const slidingTurns = 40

// R1: under the policy sliding prompts do not grow from turn 25 on, and the summary stays short, whatever its writer does.
func TestSliding(t *testing.T) {
	if testing.Short() {
		t.Skip("40 turns take a while")
	}
	t.Parallel()
	said, noted := apptest.NewWriter(3), apptest.NewWriter(4)
	number := regexp.MustCompile(`\d+`)
	var lock sync.Mutex
	p := apptest.NewProvider(t, provider.Options{Fault: func(w http.ResponseWriter, a provider.Asked) bool {
		if !a.Summary {
			return false
		}
		lock.Lock()
		defer lock.Unlock()
		text := number.ReplaceAllString(noted.Sentences(5+noted.Rand.IntN(25)), "some") // numbers that nobody said would be refused
		stream(w, map[string]any{"content": provider.Summary(a.Question) + "\n\n## Decisions\n" + text}, "stop")
		return true
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 128_000, 4096, p), apptest.WithAgent("talker",
		"name: talker\nsystem_prompt: You answer.\ncontext:\n  policy: sliding\n  summary_model: house\n"))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
	feed := follow(t.Context(), t, h.Client, id)
	var prompts, summaries []int
	for n := range slidingTurns {
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Turn %d. %s", n, said.Sentences(4+said.Rand.IntN(3)))})
		if s := session(t, h.Client, id); s.MessageCount-s.SummarizedCount > 15 { // the user reads the answer meanwhile
			until(t, feed, "summary after the run", func(e core.Event) bool {
				return e.Type == core.EventContextCompleted && apptest.EventData[core.ContextData](t, e).Version > s.SummaryVersion
			})
		}
		r := contextOf(t, h.Client, id)
		prompts = append(prompts, got.Run.Usage.InputTokens)
		for _, made := range r.Summaries[:min(1, len(r.Summaries))] {
			summaries = append(summaries, made.TokenCount)
		}
	}
	late := slices.Sorted(slices.Values(prompts[25:]))
	middle, largest := late[len(late)/2], late[len(late)-1]
	flat := float64(largest) / float64(middle)
	if flat > 1.3 {
		t.Errorf("got a prompt of %d tokens, and %d in the middle: want at most 1.3 times as many", largest, middle)
	}
	if len(summaries) < slidingTurns/2 || slices.Max(summaries) > 505 { // 500 of the model's, reported in cl100k_base
		t.Errorf("got %d reports of a summary with up to %d tokens, want at most 500", len(summaries), slices.Max(summaries))
	}
	s := session(t, h.Client, id)
	if s.MessageCount != 2*slidingTurns {
		t.Errorf("got %d messages in the log, want %d", s.MessageCount, 2*slidingTurns)
	}
}
