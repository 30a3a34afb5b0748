package bench_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/tests/dbtest"
	"bobbin/tests/process"
)

// Variables of the environment: the two programs, and how many turns each has.
const (
	beforeVariable = "BOBBIN_BENCH_BEFORE"
	afterVariable  = "BOBBIN_BENCH_AFTER"
	turnsVariable  = "BOBBIN_BENCH_TURNS"
)

const (
	warmUp       = 20     // turns of each that do not count
	sessionLong  = 10     // turns of a session
	countedTurns = warmUp // whose transactions are counted
	mostSlower   = 1.3
	mostWrites   = 2 // transactions of a turn
)

// What durability costs a turn with the demonstration model. The
// first event is at most 1.3 times as late as before, and a turn is at most two
// transactions. Two sides take turns; the rest of the machine is not quiet.
func TestShowDurability(t *testing.T) {
	before, after := os.Getenv(beforeVariable), os.Getenv(afterVariable)
	if before == "" || after == "" {
		t.Skip("it takes two builds; use make show-durability")
	}
	turns, err := strconv.Atoi(os.Getenv(turnsVariable))
	if err != nil {
		t.Fatal(err)
	}
	den, err := process.Open("bench")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(den.Close)
	for _, place := range []string{"sqlite", "postgres"} {
		t.Run(place, func(t *testing.T) {
			urls := []string{dbtest.SQLiteURL(t), dbtest.SQLiteURL(t)}
			if place == "postgres" {
				urls = []string{dbtest.PostgresURL(t), dbtest.PostgresURL(t)}
			}
			load := loadAverage()
			sides := []*side{newSide(t, den, "before", before, urls[0]), newSide(t, den, "after", after, urls[1])}
			for n := range warmUp + turns {
				for i := range sides {
					sides[(n+i)%2].turn(t, n) // each is first every other time
				}
			}
			for _, s := range sides {
				s.count(t)
			}
			report(t, sides, load)
		})
	}
}

// side is one of the two.
type side struct {
	name, url string
	database  *pgx.Conn // nil = SQLite
	session   string
	first     []time.Duration // POST to the first event, of each turn
	whole     []time.Duration // POST to the end of the stream
	writes    []int64         // transactions that wrote, of each counted turn
}

// turn has one turn, in a new session when the last one is long enough.
func (s *side) turn(t *testing.T, n int) {
	t.Helper()
	if n%sessionLong == 0 {
		s.session = s.newSession(t)
	}
	first, whole := s.say(t, fmt.Sprintf("Remark %d: the pumps in hall three run.", n))
	if n >= warmUp {
		s.first, s.whole = append(s.first, first), append(s.whole, whole)
	}
}

// count has some turns while the other side rests, and counts their transactions. What
// an answer has so far is saved every now and then, in one more: few turns have it.
func (s *side) count(t *testing.T) {
	t.Helper()
	for n := range countedTurns {
		written := s.transactions(t)
		s.turn(t, n)
		s.writes = append(s.writes, s.transactions(t)-written)
	}
}

// say sends a message and reads the stream of its run to the end.
func (s *side) say(t *testing.T, text string) (first, whole time.Duration) {
	t.Helper()
	began := time.Now()
	res := s.post(t, "/api/v1/sessions/"+s.session+"/messages", map[string]any{"content": text}, "text/event-stream")
	defer func() { _ = res.Body.Close() }() // read to its end
	succeeded := false
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		event, ok := strings.CutPrefix(lines.Text(), "event: ")
		if ok && first == 0 {
			first = time.Since(began)
		}
		succeeded = succeeded || event == "run.succeeded"
	}
	if !succeeded {
		t.Fatalf("%s: the run did not succeed", s.name)
	}
	return first, time.Since(began)
}

func (s *side) newSession(t *testing.T) string {
	t.Helper()
	res := s.post(t, "/api/v1/sessions", map[string]any{}, "application/json")
	defer func() { _ = res.Body.Close() }() // it was read
	var made struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&made); err != nil || made.ID == "" {
		t.Fatalf("%s: got session %q, %v", s.name, made.ID, err)
	}
	return made.ID
}

func (s *side) post(t *testing.T, path string, body any, accept string) *http.Response {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= http.StatusBadRequest {
		text, _ := io.ReadAll(res.Body) // the status says enough
		t.Fatalf("%s: %s: %s %s", s.name, path, res.Status, text)
	}
	return res
}

// transactions is how many transactions of the cluster have written so far: PostgreSQL
// numbers them, and nobody else is there.
func (s *side) transactions(t *testing.T) int64 {
	t.Helper()
	if s.database == nil {
		return 0
	}
	var n int64
	err := s.database.QueryRow(t.Context(), "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// report prints what was measured, and holds it against what is promised.
func report(t *testing.T, sides []*side, load string) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	row := func(cells ...any) {
		for _, cell := range cells {
			_, _ = fmt.Fprintf(w, "  %v\t", cell)
		}
		_, _ = fmt.Fprintln(w)
	}
	row("", "before", "after", "ratio")
	for _, m := range []struct {
		name  string
		of    func(*side) []time.Duration
		share float64
	}{
		{"first event, p50", func(s *side) []time.Duration { return s.first }, 0.5},
		{"first event, p95", func(s *side) []time.Duration { return s.first }, 0.95},
		{"end of turn, p50", func(s *side) []time.Duration { return s.whole }, 0.5},
		{"end of turn, p95", func(s *side) []time.Duration { return s.whole }, 0.95},
	} {
		was, is := at(m.of(sides[0]), m.share), at(m.of(sides[1]), m.share)
		ratio := float64(is) / float64(was)
		row(m.name, was.Round(10*time.Microsecond), is.Round(10*time.Microsecond), fmt.Sprintf("%.2f", ratio))
		if m.name == "first event, p50" && ratio > mostSlower {
			t.Errorf("the first event is %.2f times as late as before, want at most %.1f", ratio, mostSlower)
		}
	}
	if sides[1].database != nil {
		was, is := at(sides[0].writes, 0.25), at(sides[1].writes, 0.25)
		row("transactions that write, p25", was, is)
		if is > mostWrites {
			t.Errorf("got %d transactions that write in a turn, want at most %d", is, mostWrites)
		}
	}
	_ = w.Flush() // into memory
	t.Logf("\n%d turns of each, in turn (%s); the machine's load was %s, is %s\n%s", len(sides[0].first), t.Name(), load, loadAverage(), b.String())
}

// at returns the value that a share of all are below.
func at[T int64 | time.Duration](all []T, share float64) T {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[int(share*float64(len(sorted)-1))]
}

// loadAverage is the load of the machine in the last minute, where it tells it.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(raw), " ")
	return one
}

// newSide starts a program on an empty database.
func newSide(t *testing.T, den *process.Den, name, program, database string) *side {
	t.Helper()
	dir := den.Temp(t)
	config := filepath.Join(dir, "bobbin.yaml")
	if err := os.WriteFile(config, []byte("default_llm: demo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &side{name: name}
	s.url, _ = serve(t, den, program, dir, config, database)
	if strings.HasPrefix(database, "postgres:") {
		conn, err := pgx.Connect(t.Context(), database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) }) // the cluster ends soon
		s.database = conn
	}
	return s
}
