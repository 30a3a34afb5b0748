package eval_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"bobbin/app/core"
	"bobbin/app/eval"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/eval/recall"
	"bobbin/tests/must"
)

// recallWindows are the windows in which conversations with questions are measured.
func recallWindows() []int { return []int{8_192, 16_384} }

// recallPolicies are the policies of BOBBIN_RECALL_POLICIES, separated by commas; all without it.
func recallPolicies() []string {
	if names := os.Getenv("BOBBIN_RECALL_POLICIES"); names != "" {
		return strings.Split(names, ",")
	}
	return eval.Policies()
}

// TestShowRecall prints where the evidence of questions about long conversations is, on both
// databases, beside plain FTS5. The conversations may not be copied: BOBBIN_RECALL_DATA is the
// path to them. make show-recall runs it.
func TestShowRecall(t *testing.T) {
	t.Parallel()
	path := os.Getenv("BOBBIN_RECALL_DATA")
	if path == "" {
		t.Skip("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json, or use make show-recall")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json (%v)", err)
	}
	databases := map[string]func(t testing.TB) string{"SQLite": dbtest.MigratedSQLiteURL, "PostgreSQL": dbtest.MigratedPostgresURL}
	if only := os.Getenv("BOBBIN_RECALL_DATABASE"); only != "" {
		databases = map[string]func(t testing.TB) string{only: databases[only]}
	}
	for name, open := range databases {
		report := askRecall(t, recall.Evaluation{Windows: recallWindows(), Recalls: []string{"tool", "auto"}, Evaluation: eval.Evaluation{
			Source: filepath.Base(path), Data: data, Policies: recallPolicies(),
			Database: func() (string, error) { return open(t), nil },
		}})
		t.Logf("%s\n%s", name, recallTable(t, report))
		if report.Failed() {
			t.Errorf("%s: got a conversation that ended early", name)
		}
	}
	t.Logf("SQLite FTS5, porter, words joined by OR, bm25(): %s", plainFTS5(t, data))
}

// askRecall evaluates.
func askRecall(t *testing.T, e recall.Evaluation) recall.Report {
	t.Helper()
	report, err := recall.Evaluate(t.Context(), settings(), quiet(), e)
	if err != nil {
		t.Fatalf("evaluate %s: %v", e.Source, err)
	}
	return report
}

// recallTable returns the report as people read it.
func recallTable(t *testing.T, r recall.Report) string {
	t.Helper()
	var table bytes.Buffer
	must.Do(t, r.WriteTable(&table))
	return table.String()
}

// talk is a conversation with questions, as its file has it.
type talk struct {
	Speakers  []string
	Messages  []struct{ ID, Speaker, At, Text string }
	Questions []askedQuestion
}

type askedQuestion struct {
	Question string
	Evidence []string // ids of messages
}

// plainFTS5 says how many questions have evidence among the first 1, 5 and 20 messages that
// SQLite's own full-text search finds for them: what a ranking has to beat.
func plainFTS5(t *testing.T, data []byte) string {
	t.Helper()
	var talks []talk
	must.Do(t, json.Unmarshal(data, &talks))
	asked, first := 0, map[int]int{}
	for _, talk := range talks {
		for _, rank := range talk.ranksInFTS5(t) {
			asked++
			for _, n := range []int{1, 5, 20} {
				if rank > 0 && rank <= n {
					first[n]++
				}
			}
		}
	}
	share := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(first[n])/float64(asked)) }
	return fmt.Sprintf("first 1 %s, first 5 %s, first 20 %s", share(1), share(5), share(20))
}

// ranksInFTS5 returns for each question with evidence the place of the first result that is
// evidence; 0 = none of the first 20 is.
func (c talk) ranksInFTS5(t *testing.T) []int {
	t.Helper()
	db := dbtest.SQLite(t).Gorm
	exec := func(stmt string, args ...any) {
		must.Do(t, db.Exec(stmt, args...).Error)
	}
	exec(`CREATE VIRTUAL TABLE plain_fts5 USING fts5(id UNINDEXED, body, tokenize='porter unicode61')`)
	said := map[string]bool{}
	for _, m := range c.Messages {
		if strings.TrimSpace(m.Text) != "" {
			said[m.ID] = true
			exec(`INSERT INTO plain_fts5 VALUES (?, ?)`, m.ID, m.Text)
		}
	}
	var ranks []int
	for _, q := range c.Questions {
		if !slices.ContainsFunc(q.Evidence, func(id string) bool { return said[id] }) {
			continue
		}
		words := strings.FieldsFunc(q.Question, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		var found []string
		err := db.Raw(`SELECT id FROM plain_fts5 WHERE plain_fts5 MATCH ? ORDER BY bm25(plain_fts5) LIMIT 20`, `"`+strings.Join(words, `" OR "`)+`"`).Scan(&found).Error
		must.Do(t, err)
		ranks = append(ranks, 1+slices.IndexFunc(found, func(id string) bool { return slices.Contains(q.Evidence, id) }))
	}
	return ranks
}

// The sample's questions are asked offline, and the figures are the same on both databases
// (P16-6). CI has one row of them, on SQLite.
func TestRecallSample(t *testing.T) {
	t.Parallel()
	databases := map[string]func(t testing.TB) string{"SQLite": dbtest.MigratedSQLiteURL}
	policies, modes := []string{"window"}, []string{"tool"}
	if *update || apptest.IsLong() {
		databases["PostgreSQL"], policies, modes = dbtest.MigratedPostgresURL, []string{"window", "sliding"}, []string{"tool", "auto"}
	}
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report := askRecall(t, recall.Evaluation{Windows: []int{recall.SampleWindow}, Recalls: modes, Evaluation: eval.Evaluation{
				Source: "sample", Data: recall.Sample, Policies: policies, Database: func() (string, error) { return open(t), nil },
			}})
			if len(report.Rows) != len(policies)*len(modes) || report.Questions != 36 || report.Conversations != 2 || report.Failed() {
				t.Fatalf("got %+v, want 36 questions under each policy", report)
			}
			for _, row := range report.Rows {
				if sum := row.InPrompt + row.InSummary + row.BySearch1 + row.BySearch5 + row.BySearch20 + row.NotAtAll; sum != row.Questions || row.Questions != 36 {
					t.Errorf("got %+v: %d questions in all places, want 36", row, sum)
				}
				if row.First1 > row.First5 || row.First5 > row.First20 || row.First20 < row.BySearch1+row.BySearch5+row.BySearch20 {
					t.Errorf("got %+v, want more questions further down", row)
				}
				if row.InPrompt == 0 || row.PromptTokens == 0 || row.Largest > row.Window || row.Window != recall.SampleWindow {
					t.Errorf("got %+v, want prompts that fit the window and hold some of the evidence", row)
				}
			}
			if len(policies) > 1 {
				golden(t, filepath.Join("testdata", "recall.txt"), []byte(recallTable(t, report)))
			}
		})
	}
}

// quotedMessage is a message as search_history quotes it.
type quotedMessage struct {
	passage int // its place among the passages
	seq     int64
	found   bool // else it stands beside one that was found
	text    string
}

// quotedBeside is how many messages on each side of a result search_history quotes at most.
const quotedBeside = 4

// quoteHeading matches the line above a quoted message.
var quoteHeading = regexp.MustCompile(`^\[(message \S+, )?#(\d+), `)

// readQuotes returns the messages that an answer of search_history quotes.
func readQuotes(answer string) []quotedMessage {
	var quotes []quotedMessage
	passage := 0
	for line := range strings.Lines(answer) {
		heading := quoteHeading.FindStringSubmatch(line)
		switch {
		case heading != nil:
			seq, _ := strconv.ParseInt(heading[2], 10, 64)
			quotes = append(quotes, quotedMessage{passage: passage, seq: seq, found: heading[1] != ""})
		case line == "---\n":
			passage++
		case len(quotes) > 0:
			quotes[len(quotes)-1].text += line
		}
	}
	return quotes
}

// firstQuotes returns what an answer of search_history quotes for the first n of its results:
// these and those beside them. The ranking has all results in order.
func firstQuotes(answer string, ranking []core.SearchHit, n int) string {
	quotes := readQuotes(answer)
	var text strings.Builder
	for _, hit := range ranking {
		at := slices.IndexFunc(quotes, func(q quotedMessage) bool { return q.found && q.seq == hit.Seq })
		if at < 0 || n == 0 {
			continue // the prompt has it already
		}
		n--
		for _, q := range quotes {
			if q.passage == quotes[at].passage && max(q.seq-hit.Seq, hit.Seq-q.seq) <= quotedBeside {
				text.WriteString(plainLine(q.text) + "\n")
			}
		}
	}
	return text.String()
}

// Who said what, and when, counts in the search as after an import of the conversation, for
// questions and answers: of two messages with the same words about the canoe, the one by the person or
// of the day that the question names comes first.
func TestRecallCountsAuthorsAndTimes(t *testing.T) {
	t.Parallel()
	type message struct {
		ID      string `json:"id"`
		Speaker string `json:"speaker"`
		At      string `json:"at"`
		Text    string `json:"text"`
	}
	type question struct {
		Question string   `json:"question"`
		Evidence []string `json:"evidence"`
	}
	var messages []message
	say := func(speaker string, day int, text string) {
		messages = append(messages, message{fmt.Sprint(len(messages) + 1), speaker, fmt.Sprintf("1:56 pm on %d May, 2023", day), text})
	}
	for turn := range 20 {
		ann, ben := "Good morning to you.", "Yes, a good morning."
		switch turn {
		case 5:
			ann = "The canoe is dry now."
		case 14:
			ben = "The canoe is wet now."
		}
		say("Ann", 1+turn, ann)
		say("Ben", 1+turn, ben)
	}
	data, err := json.Marshal([]any{map[string]any{"id": "c", "speakers": []string{"Ann", "Ben"}, "messages": messages, "questions": []question{
		{"What did Ann say about the canoe?", []string{"11"}},
		{"What did Ben say about the canoe?", []string{"30"}},
		{"What about the canoe on 6 May, 2023?", []string{"11"}},
		{"What about the canoe on 15 May, 2023?", []string{"30"}},
	}}})
	must.Do(t, err)
	report := askRecall(t, recall.Evaluation{Windows: []int{8_192}, Recalls: []string{"tool"}, Evaluation: eval.Evaluation{
		Source: "canoe", Data: data, Policies: []string{"off"}, Database: func() (string, error) { return dbtest.MigratedSQLiteURL(t), nil },
	}})
	if len(report.Rows) != 1 || report.Failed() || report.Rows[0].Questions != 4 || report.Rows[0].First1 != 4 {
		t.Errorf("got %+v, want the evidence of all 4 questions first", report.Rows)
	}
}
