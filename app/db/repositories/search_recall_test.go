package repositories_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// recallTalk is a conversation with questions, in the shape of ../shared/data.
type recallTalk struct {
	ID       string
	Messages []struct{ ID, Text string }

	Questions []struct {
		Question string
		Evidence []string
	}
}

// What the ranked search finds of conversations with questions, the question as query: the
// share of questions with a message of the evidence among the first 5 and 20 results, and
// among them with two messages on each side. `make show-recall` passes the data.
func TestShowRankedRecall(t *testing.T) {
	path := os.Getenv("BOBBIN_RECALL_DATA")
	if path == "" {
		t.Skip("set BOBBIN_RECALL_DATA to a file of conversations with questions, or use make show-recall")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("no data: %v", err)
	}
	var talks []recallTalk
	if err := json.Unmarshal(raw, &talks); err != nil {
		t.Fatal(err)
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		asked, found, took := 0, [4]int{}, time.Duration(0)
		for _, talk := range talks {
			id := s.session(t).ID
			seqs := map[string]int64{}
			var messages []core.Message
			for i, m := range talk.Messages {
				seqs[m.ID] = int64(i + 1)
				messages = append(messages, core.Message{Role: core.RoleUser, Content: m.Text})
			}
			if err := repositories.Fillup(t.Context(), s.Gorm, id, messages); err != nil {
				t.Fatal(err)
			}
			for _, q := range talk.Questions {
				q.Evidence = slices.DeleteFunc(q.Evidence, func(id string) bool { return seqs[id] == 0 })
				if len(q.Evidence) == 0 {
					continue
				}
				asked++
				began := time.Now()
				page := s.search(t, ann(), core.SearchQuery{Text: q.Question, SessionID: id, Sort: core.SortRelevance, PageQuery: core.PageQuery{Limit: 20}})
				took += time.Since(began)
				for i, n := range []int{5, 20} {
					for k, reach := range []int64{0, 2} {
						if slices.ContainsFunc(page.Items[:min(n, len(page.Items))], func(h core.SearchHit) bool {
							return slices.ContainsFunc(q.Evidence, func(id string) bool { return max(h.Seq-seqs[id], seqs[id]-h.Seq) <= reach })
						}) {
							found[2*k+i]++
						}
					}
				}
			}
		}
		share := func(i int) string { return fmt.Sprintf("%.1f %%", 100*float64(found[i])/float64(asked)) }
		t.Logf("%d questions: first 5 %s, first 20 %s; quoted with two messages before and after: %s, %s; %s each",
			asked, share(0), share(1), share(2), share(3), (took / time.Duration(asked)).Round(time.Microsecond))
		for i, least := range []float64{72, 86, 83, 92} {
			if 100*float64(found[i])/float64(asked) < least {
				t.Errorf("figure %d: got %s, want %.0f %%", i+1, share(i), least)
			}
		}
	})
}
