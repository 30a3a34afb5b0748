package eval_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
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
