package repositories_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

// maxIndexed is how many bytes the loop may write to index the messages of a turn.
const maxIndexed = 64 << 10

// A turn writes nothing to the index of the search, which is written afterwards. The test prints
// how large the index is, and what a turn and the indexing of its two messages write and compute,
// beside turns whose messages are indexed as soon as they are written. `make show-index` measures
// 10,000 messages and 1,000 turns.
func TestShowIndexCost(t *testing.T) {
	messages, turns := 200, 10
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		messages, turns = 10_000, 1_000
	}
	// One after the other: the CPU time is that of the process.
	for name, openDB := range map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres} {
		t.Run(name, func(t *testing.T) {
			s := open(openDB(t))
			var b strings.Builder
			w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
			fmt.Fprint(w, "messages\tnumber\tbytes of text\tof the index\tof these for words\trows\tKB written\tCPU ms\tof PostgreSQL\t\n")
			s.measureIndex(t, w, "English, German, Chinese, code", corpusTexts(messages))
			s.measureIndex(t, w, "two people talk", talkTexts(t))
			fmt.Fprint(w, "turns\t\t\t\t\t\t\t\t\t\n")
			s.measureTurns(t, w, turns)
			_ = w.Flush() // into memory
			t.Logf("each figure is that of one message or one turn; for messages, of the loop that indexes them\n%s", b.String())
		})
	}
}

// corpusTexts returns texts of the corpus.
func corpusTexts(n int) (texts []string) {
	c := newCorpus()
	for range n {
		texts = append(texts, c.next().Content)
	}
	return texts
}

// talkTexts returns the messages of the conversations, if there are any.
func talkTexts(t *testing.T) (texts []string) {
	t.Helper()
	raw, err := os.ReadFile(os.Getenv("BOBBIN_RECALL_DATA"))
	if err != nil {
		return nil
	}
	var talks []recallTalk
	if err := json.Unmarshal(raw, &talks); err != nil {
		t.Fatal(err)
	}
	for _, talk := range talks {
		for _, m := range talk.Messages {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

// measureIndex stores and indexes messages in sessions of 100, and prints a row if there are any.
func (s *store) measureIndex(t *testing.T, w *tabwriter.Writer, name string, texts []string) {
	t.Helper()
	var messages []core.Message
	size := 0
	for i, text := range texts {
		messages = append(messages, core.Message{Role: core.RoleUser, Content: text})
		size += len(text)
		if len(messages) == corpusSession || i == len(texts)-1 {
			if err := repositories.Fillup(t.Context(), s.Gorm, s.session(t).ID, messages); err != nil {
				t.Fatal(err)
			}
			messages = nil
		}
	}
	if len(texts) == 0 {
		return
	}
	before, whole, words := s.readCost(t), s.indexBytes(t, ""), s.indexBytes(t, "_words")
	s.index(t)
	c, n := s.readCost(t).since(before), float64(len(texts))
	fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.2f\t%.2f\t\n", name, len(texts), float64(size)/n,
		(s.indexBytes(t, "")-whole)/n, (s.indexBytes(t, "_words")-words)/n, c.rows/n, c.written/n/1024, c.cpu/n, c.cpuPostgres/n)
}

// measureTurns has turns in sessions of ten, and prints a row for what they and the loop do.
func (s *store) measureTurns(t *testing.T, w *tabwriter.Writer, turns int) {
	t.Helper()
	size := 0
	runTurns := func(then func()) {
		size = 0
		var id core.SessionID
		c := newCorpus()
		for i := range turns {
			if i%10 == 0 {
				id = s.session(t).ID
			}
			question, answer := c.next().Content, c.next().Content
			run := s.accept(t, ask(id, question)).Run
			then()
			s.finish(t, run, answer)
			then()
			size += len(question) + len(answer)
		}
	}
	row := func(name string, step func(), wantRows float64) (written float64) {
		before := s.readCost(t)
		step()
		c, n := s.readCost(t).since(before), float64(turns)
		fmt.Fprintf(w, "%s\t%d\t%.0f\t\t\t%.1f\t%.1f\t%.2f\t%.2f\t\n", name, turns, float64(size)/n, c.rows/n, c.written/n/1024, c.cpu/n, c.cpuPostgres/n)
		if c.rows != wantRows*n {
			t.Errorf("%s: got %.0f rows in the index after %d turns, want %.0f", name, c.rows, turns, wantRows*n)
		}
		return c.written / n
	}
	row("the turn", func() { runTurns(func() {}) }, 0)
	got := row("the loop, afterwards", func() { s.index(t) }, 2)
	if isAlone := os.Getenv("BOBBIN_TEST_LONG") != ""; got > maxIndexed && (isAlone || s.Dialect() == "sqlite") { // PostgreSQL's WAL is that of all tests in progress
		t.Errorf("the loop: got %.0f bytes written for a turn, want at most %d", got, maxIndexed)
	}
	row("the turn, each message indexed at once", func() { runTurns(func() { s.index(t) }) }, 2)
}

// indexBytes returns the size of the index, or of its part for words.
func (s *store) indexBytes(t *testing.T, part string) float64 {
	t.Helper()
	if s.Dialect() == "sqlite" {
		return float64(s.count(t, "SELECT COALESCE(SUM(pgsize), 0) FROM dbstat WHERE name LIKE ?", "search"+part+"%"))
	}
	if part == "" {
		return float64(s.count(t, "SELECT pg_total_relation_size('search_entries')"))
	}
	return float64(s.count(t, "SELECT pg_relation_size('search_entries"+part+"')"))
}

// writeCost is what was written and computed so far.
type writeCost struct {
	rows             float64 // of messages in the index
	written          float64 // bytes: WAL of PostgreSQL, writes of this process for SQLite
	cpu, cpuPostgres float64 // ms
}

func (c writeCost) since(before writeCost) writeCost {
	return writeCost{c.rows - before.rows, c.written - before.written, c.cpu - before.cpu, c.cpuPostgres - before.cpuPostgres}
}

// readCost returns the cost so far. Times and writes are 0 where there is no /proc.
func (s *store) readCost(t *testing.T) (c writeCost) {
	t.Helper()
	c.rows = float64(s.count(t, "SELECT COUNT(*) FROM search_entries WHERE message_id IS NOT NULL"))
	_, c.cpu = processStat("self", 11, 12)
	if s.Dialect() == "sqlite" {
		raw, _ := os.ReadFile("/proc/self/io")
		_, text, _ := strings.Cut(string(raw), "wchar: ")
		text, _, _ = strings.Cut(text, "\n")
		c.written, _ = strconv.ParseFloat(text, 64)
		return c
	}
	c.written = float64(s.count(t, "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bigint)"))
	server, _ := processStat(strconv.Itoa(s.count(t, "SELECT pg_backend_pid()")))
	_, c.cpuPostgres = processStat(server, 11, 12, 13, 14) // with those that have ended
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")         // the pattern is well formed
	for _, path := range stats {
		if parent, cpu := processStat(filepath.Base(filepath.Dir(path)), 11, 12); parent == server {
			c.cpuPostgres += cpu
		}
	}
	return c
}

// processStat returns the parent of a process, and the sum of fields of its stat file that follow
// the name and are times, in ms. A tick is 10 ms on every Linux.
func processStat(pid string, times ...int) (parent string, ms float64) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return "", 0
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	for _, n := range times {
		ticks, _ := strconv.ParseFloat(fields[n], 64) // they are numbers
		ms += 10 * ticks
	}
	return fields[1], ms
}
