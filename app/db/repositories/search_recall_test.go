package repositories_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
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
// among them with two messages on each side; as they are, and with an answer of 30 messages of
// another conversation behind every second message. `make show-recall` passes the data.
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
	must.Do(t, json.Unmarshal(raw, &talks))
	for name, c := range map[string]struct {
		answers int // messages in an answer between every two
		least   []float64
	}{
		"short messages": {0, []float64{73, 85, 83, 92}},
		"long answers":   {30, []float64{46, 66, 78, 87}},
	} {
		t.Run(name, func(t *testing.T) { showRankedRecall(t, talks, c.answers, c.least) })
	}
}

func showRankedRecall(t *testing.T, talks []recallTalk, answers int, floors []float64) {
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		asked, found, took := 0, [4]int{}, time.Duration(0)
		for n, talk := range talks {
			id := s.session(t).ID
			seqs := map[string]int64{}
			var messages []core.Message
			for i, m := range talk.Messages {
				messages = append(messages, core.Message{Role: core.RoleUser, Content: m.Text})
				seqs[m.ID] = int64(len(messages))
				if answers > 0 && i%2 == 1 {
					var answer strings.Builder
					other := talks[(n+1)%len(talks)].Messages
					for k := range answers {
						answer.WriteString(other[(i*answers+k)%len(other)].Text + " ")
					}
					messages = append(messages, core.Message{Role: core.RoleAssistant, Content: answer.String()})
				}
			}
			must.Do(t, repositories.Fillup(t.Context(), s.Gorm, id, messages))
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
		for i, least := range floors {
			if 100*float64(found[i])/float64(asked) < least {
				t.Errorf("figure %d: got %s, want %.0f %%", i+1, share(i), least)
			}
		}
	})
}
