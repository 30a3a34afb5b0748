package eval_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

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
func plainFTS5(t *testing.T, talks []talk) string {
	t.Helper()
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

// TestShowRecallOfRuns asks each question of BOBBIN_RECALL_DATA of a served Bobbin twice: as the
// query of GET /api/v1/search, and as a message to an agent whose model passes it to search_history
// unchanged. It prints how many have their evidence among the first results, and in what the model
// reads; with the embedding models of scripts/clients embeddings beside words alone, and beside plain
// FTS5. make show-recall runs it.
func TestShowRecallOfRuns(t *testing.T) {
	path := os.Getenv("BOBBIN_RECALL_DATA")
	if path == "" {
		t.Skip("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json, or use make show-recall")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("nothing to measure with: %v", err)
	}
	var talks []talk
	must.Do(t, json.Unmarshal(data, &talks))
	t.Logf("SQLite FTS5, porter, words joined by OR, bm25(): %s", plainFTS5(t, talks))
	for name, open := range map[string]func(testing.TB) string{"SQLite": dbtest.MigratedSQLiteURL, "PostgreSQL": dbtest.MigratedPostgresURL} {
		for _, model := range []string{"", "all-MiniLM-L6-v2", "all-mpnet-base-v2"} {
			with, goalQuoted5, goalQuoted := "words", 83.0, 92.0
			if model != "" {
				with, goalQuoted5, goalQuoted = with+" and "+model, 89, 96
			}
			t.Run(name+", "+with, func(t *testing.T) {
				asked := askTalks(t, open(t), model, talks)
				t.Logf("%s, %s: %s", name, with, asked)
				for _, goal := range []struct {
					name  string
					found int
					least float64
				}{{"first 5", asked.first5, 72}, {"first 20", asked.first20, 86}, {"quoted for the first 5", asked.quoted5, goalQuoted5}, {"quoted to the model", asked.quoted, goalQuoted}} {
					if share := 100 * float64(goal.found) / float64(asked.questions); share < goal.least {
						t.Errorf("%s: got %.1f %%, want at least %.0f %%", goal.name, share, goal.least)
					}
				}
			})
		}
	}
}

// recallOfRuns counts the questions with evidence.
type recallOfRuns struct {
	questions, first5, first20, quoted5, quoted, read, tokens int
}

func (r recallOfRuns) String() string {
	share := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(r.questions)) }
	return fmt.Sprintf("%d questions: GET /api/v1/search has evidence among the first 5 in %s, the first 20 in %s; search_history quotes it to the model in %s, for its first 5 results in %s, the model reads it anywhere in %s of the prompts, of %d tokens",
		r.questions, share(r.first5), share(r.first20), share(r.quoted), share(r.quoted5), share(r.read), r.tokens/r.questions)
}

// askTalks imports the conversations into a new Bobbin with the embedding model, unless it is empty,
// and asks their questions.
func askTalks(t *testing.T, url, embeddingModel string, talks []talk) recallOfRuns {
	t.Helper()
	question := ""
	var prompt provider.Received // of the last request; runs come one at a time
	p := apptest.NewProvider(t, provider.Options{Calls: func(r provider.Received) []provider.Call {
		prompt = r
		last := r.Messages[len(r.Messages)-1]
		if last.Role != "user" {
			return nil
		}
		arguments, err := json.Marshal(map[string]string{"query": question})
		if err != nil {
			t.Error(err)
		}
		return []provider.Call{{ID: "call_search", Name: core.ToolSearchHistory, Arguments: string(arguments)}}
	}})
	h := apptest.New(t, url, apptest.WithModel("house", 8_192, 1024, p), apptest.WithAgent("reader", "name: reader\ntools: [search_history]\n"), func(c *config.Config) {
		if embeddingModel != "" {
			c.Models = append(c.Models, config.Model{Name: embeddingModel, Provider: "openai", BaseURL: startEmbeddings(t, embeddingModel)})
			c.EmbeddingModel = embeddingModel
		}
	})
	var asked recallOfRuns
	for _, c := range talks {
		id, texts := c.importTo(t, h)
		if embeddingModel != "" {
			waitForVectors(t, url, id)
		}
		last := must.Get(client.Call(t.Context(), h, ops.ListMessages, ops.MessageList{
			InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{Descending: true, PageQuery: core.PageQuery{Limit: 1}},
		}))(t).Items[0]
		questions := slices.DeleteFunc(slices.Clone(c.Questions), func(q askedQuestion) bool {
			return !slices.ContainsFunc(q.Evidence, func(id string) bool { return texts[id] != "" })
		})
		asked.questions += len(questions)
		rankings := make([][]core.SearchHit, len(questions))
		for i, q := range questions {
			found := must.Get(client.Call(t.Context(), h, ops.Search, core.SearchQuery{Text: q.Question, SessionID: id, PageQuery: core.PageQuery{Limit: 50}}))(t).Items
			rankings[i] = found
			place := slices.IndexFunc(found, func(hit core.SearchHit) bool {
				return slices.ContainsFunc(q.Evidence, func(id string) bool { return texts[id] != "" && hit.Seq == c.seq(id) })
			})
			asked.first5 += count(place >= 0 && place < 5)
			asked.first20 += count(place >= 0 && place < 20)
		}
		for i, q := range questions {
			question = q.Question
			turn := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: q.Question, After: last.ID})
			answer, read := "", ""
			for _, m := range turn.Messages {
				if m.Role == core.RoleTool {
					answer = m.Content
				}
			}
			for _, m := range prompt.Messages {
				read += plainLine(m.Text) + "\n"
			}
			isIn := func(text string) bool {
				return slices.ContainsFunc(q.Evidence, func(id string) bool { return texts[id] != "" && strings.Contains(text, plainStart(texts[id])) })
			}
			asked.quoted5 += count(isIn(firstQuotes(answer, rankings[i], 5)))
			asked.quoted += count(isIn(plainLine(answer)))
			asked.read += count(isIn(read))
			asked.tokens += prompt.Tokens
		}
	}
	return asked
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// plainLine returns the text in a single line.
func plainLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// plainStart returns the beginning of a message as it is quoted: excerpts may end behind it.
func plainStart(text string) string {
	runes := []rune(plainLine(text))
	return string(runes[:min(len(runes), 120)])
}

// seq returns the place of a message in the log.
func (c talk) seq(id string) int64 {
	seq := int64(0)
	for _, m := range c.Messages {
		if strings.TrimSpace(m.Text) != "" {
			seq++
		}
		if m.ID == id {
			return seq
		}
	}
	return 0
}

// importTo imports the conversation with who said what, and when, and returns its session, and the texts of its messages by id.
func (c talk) importTo(t *testing.T, h *apptest.Bobbin) (core.SessionID, map[string]string) {
	t.Helper()
	id, texts := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "reader"}), map[string]string{}
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	for _, m := range c.Messages {
		if strings.TrimSpace(m.Text) == "" {
			continue
		}
		texts[m.ID] = m.Text
		role := core.RoleAssistant
		if m.Speaker == c.Speakers[0] {
			role = core.RoleUser
		}
		line := map[string]string{"role": string(role), "content": m.Text, "author": m.Speaker}
		if at, err := time.Parse("3:04 pm on 2 January, 2006", m.At); err == nil {
			line["created_at"] = at.Format(time.RFC3339)
		}
		must.Do(t, encoder.Encode(line))
	}
	must.Get(h.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Format: core.ImportLines, Body: strings.NewReader(lines.String())}))(t)
	return id, texts
}

// waitForVectors waits until all messages of the session are embedded, for five minutes at most.
func waitForVectors(t *testing.T, url string, id core.SessionID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for db := dbtest.Open(t, url).Gorm; ; apptest.PauseBriefly(t) {
		var left int64
		err := db.WithContext(ctx).Raw("SELECT COUNT(*) FROM messages m WHERE m.session_id = ? AND NOT EXISTS (SELECT 1 FROM message_vectors v WHERE v.message_id = m.id)", id).Scan(&left).Error
		must.Do(t, err)
		if left == 0 {
			return
		}
	}
}

// startEmbeddings starts the server of embeddings with the model and returns its address. Without
// its packages the test is skipped.
func startEmbeddings(t *testing.T, model string) string {
	t.Helper()
	folder := "embeddings"
	if _, err := os.Stat(filepath.Join(folder, "venv", "installed")); err != nil {
		t.Skip("no embedding model: run scripts/clients embeddings")
	}
	server := exec.CommandContext(t.Context(), filepath.Join(folder, "venv", "bin", "python"), filepath.Join(folder, "server.py"), model)
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) } // it prints what it took
	server.Stderr = os.Stderr
	output, err := server.StdoutPipe()
	if err == nil {
		err = server.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() { _ = server.Wait() })
	address := must.Get(bufio.NewReader(output).ReadString('\n'))(t)
	return strings.TrimSpace(address)
}
