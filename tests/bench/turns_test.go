package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/api/ops"
	bobbin "bobbin/app/client"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// A turn of the benchmark, as in the first comparison with LangGraph.
const (
	messageText = "I moved the herons' feeding times to the early morning, since the visitors come later now. Please write the notice for the gate again, " +
		"shorter than the last one, and never use more than two sentences for it."
	answerChunks = 64
	chunkText    = "a word "
)

// series is one run of a target: sessions have their turns at the same time.
type series struct {
	Target   string `json:"target"`
	Stream   bool   `json:"stream"`
	Sessions int    `json:"sessions"`
	Turns    int    `json:"turns"` // of all sessions

	PerSecond   float64 `json:"turns_per_second"`
	First50     float64 `json:"first_p50_ms"`
	First99     float64 `json:"first_p99_ms"`
	Whole50     float64 `json:"turn_p50_ms"`
	Whole99     float64 `json:"turn_p99_ms"`
	CPU         float64 `json:"cpu_ms_per_turn"`          // of the service, or of what stands in its place
	CPUDatabase float64 `json:"cpu_database_ms_per_turn"` // of PostgreSQL; SQLite's is the service's
	Commits     float64 `json:"commits_per_turn"`         // of PostgreSQL, also of reads
	WAL         float64 `json:"wal_kb_per_turn"`
	Stored      float64 `json:"stored_kb_per_turn"`
	Allocated   float64 `json:"allocated_kb_per_turn"` // of memory, by Bobbin
	RSS         float64 `json:"rss_mb"`
}

// target is what has turns.
type target struct {
	name     string
	url      string // of Bobbin
	streams  bool   // it can stream
	pid      int    // 0 = this process
	database *pgx.Conn
	file     string // of SQLite
	// newTurns returns what has the turns of one session. It returns when the first word came.
	newTurns func(t *testing.T, n int, stream bool) func() (time.Duration, error)
}

// What a turn takes: Bobbin on both databases, the bare rows of a turn written by pgx and SQLite with
// shared commits, and the provider called directly, in turns on the same machine. The median of some
// runs is printed as a table and written as JSON to the folder that BOBBIN_BENCH_DIR names. CPU hardly depends on what else the machine does; rates and times do.
func TestShowBench(t *testing.T) {
	runs, turns, loads := 1, 2, []int{2}
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		runs, turns, loads = 5, 10, []int{1, 8, 64}
	}
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	provider := newLeanProvider(t)
	targets := []target{
		newBobbinTarget(t, den, "Bobbin, SQLite", provider, dbtest.SQLiteURL(t)), newBobbinTarget(t, den, "Bobbin, PostgreSQL", provider, dbtest.PostgresURL(t)),
		newBobbinTarget(t, den, "Bobbin, SQLite, durability normal", provider, dbtest.SQLiteURL(t), "database: {durability: normal}"),
		newFloor(t, "rows alone, SQLite", dbtest.SQLiteURL(t)), newFloor(t, "rows alone, PostgreSQL", dbtest.PostgresURL(t)), newProviderTarget(provider),
	}
	all := map[string][]series{} // the runs of each row of the table
	var order []string
	for run := range runs {
		for _, sessions := range loads {
			for _, stream := range []bool{true, false} {
				for _, x := range targets {
					if stream && !x.streams {
						continue
					}
					s := x.measure(t, sessions, max(turns, 64/sessions*turns/10), stream)
					key := fmt.Sprint(x.name, sessions, stream)
					if run == 0 {
						order = append(order, key)
					}
					all[key] = append(all[key], s)
				}
			}
		}
		t.Logf("run %d of %d is done, the load is %s", run+1, runs, loadAverage())
	}
	var medians []series
	for _, key := range order {
		medians = append(medians, medianSeries(all[key]))
	}
	printSeries(t, medians)
	tokens := 500 * runs // of each of 16 answers, one each 10 ms
	x := newBobbinTarget(t, den, "Bobbin, SQLite", newPacedProvider(t, tokens, 10*time.Millisecond), dbtest.SQLiteURL(t))
	s := x.measure(t, 16, 1, true)
	t.Logf("a token that comes by itself takes %.0f µs (with %.1f ms for the turn of %d of them)", s.CPU*1e3/float64(tokens), s.CPU, tokens)
	writeSeries(t, medians)
	for _, s := range medians {
		if s.PerSecond <= 0 || s.CPU < 0 || s.Whole50 <= 0 {
			t.Errorf("nothing was measured: %+v", s)
		}
	}
}

// measure has the turns and returns what they took.
func (x target) measure(t *testing.T, sessions, turns int, stream bool) series {
	t.Helper()
	have := make([]func() (time.Duration, error), sessions)
	for n := range have {
		have[n] = x.newTurns(t, n, stream)
	}
	return x.measureOf(t, have, turns, stream)
}

// measureOf has so many turns of each of the sessions and returns what they took.
func (x target) measureOf(t *testing.T, have []func() (time.Duration, error), turns int, stream bool) series {
	t.Helper()
	var mu sync.Mutex
	var first, whole []float64
	cpu, database, commits, wal, stored := cpuOf(t, x.pid), x.databaseCPU(t), x.counter(t, commitsSQL), x.counter(t, walSQL), x.storedBytes(t)
	allocated := x.allocatedBytes(t)
	began := time.Now()
	var all sync.WaitGroup
	for _, turn := range have {
		all.Go(func() {
			for range turns {
				start := time.Now()
				word, err := turn()
				mu.Lock()
				if err != nil {
					t.Errorf("%s: %v", x.name, err)
				}
				first, whole = append(first, word.Seconds()*1e3), append(whole, time.Since(start).Seconds()*1e3)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	took, n := time.Since(began).Seconds(), float64(len(have)*turns)
	process.Pause(t.Context(), time.Second) // what a turn leaves to the background is its cost, too
	slices.Sort(first)
	slices.Sort(whole)
	return series{
		Target: x.name, Stream: stream, Sessions: len(have), Turns: len(have) * turns, PerSecond: n / took,
		First50: first[len(first)/2], First99: first[len(first)*99/100], Whole50: whole[len(whole)/2], Whole99: whole[len(whole)*99/100],
		CPU: (cpuOf(t, x.pid) - cpu) / n, CPUDatabase: (x.databaseCPU(t) - database) / n,
		Commits: (x.counter(t, commitsSQL) - commits) / n, WAL: (x.counter(t, walSQL) - wal) / n / 1024,
		Stored: (x.storedBytes(t) - stored) / n / 1024, Allocated: (x.allocatedBytes(t) - allocated) / n / 1024, RSS: residentMB(t, x.pid),
	}
}

// Questions for PostgreSQL.
const (
	commitsSQL = "SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = current_database()"
	walSQL     = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8"
	sizeSQL    = "SELECT pg_database_size(current_database())::float8"
)

// counter returns a number of PostgreSQL; 0 for other targets.
func (x target) counter(t *testing.T, query string) (n float64) {
	t.Helper()
	if x.database != nil {
		must.Do(t, x.database.QueryRow(t.Context(), query).Scan(&n))
	}
	return n
}

// storedBytes returns the size of the database.
func (x target) storedBytes(t *testing.T) (n float64) {
	t.Helper()
	if x.database != nil {
		return x.counter(t, sizeSQL)
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(x.file + suffix); x.file != "" && err == nil {
			n += float64(info.Size())
		}
	}
	return n
}

// allocatedBytes returns how much memory Bobbin has allocated so far; 0 for other targets.
func (x target) allocatedBytes(t *testing.T) (n float64) {
	t.Helper()
	if x.url == "" {
		return 0
	}
	res, err := client.Get(x.url + "/metrics") //nolint:noctx // it has no end of its own
	must.Do(t, err)
	defer func() { _ = res.Body.Close() }() // it is read to its end
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "go_memstats_alloc_bytes_total "); ok {
			n, err = strconv.ParseFloat(value, 64)
		}
	}
	if err != nil || n == 0 {
		t.Fatalf("go_memstats_alloc_bytes_total is not in /metrics: %v", err)
	}
	return n
}

// clockTick is how long a tick of /proc is, on every Linux.
const clockTick = 10 // ms

// cpuOf returns the CPU time of a process so far, in ms; of this one without a pid.
func cpuOf(t *testing.T, pid int) float64 {
	t.Helper()
	name := strconv.Itoa(pid)
	if pid == 0 {
		name = "self"
	}
	raw, err := os.ReadFile(filepath.Join("/proc", name, "stat"))
	if err != nil {
		t.Skip("it takes /proc")
	}
	return ticks(raw, 11, 12)
}

// ticks returns the sum of fields of a stat file of /proc after the name, in ms.
func ticks(stat []byte, which ...int) (ms float64) {
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, n := range which {
		v, _ := strconv.ParseFloat(fields[n], 64) // they are numbers
		ms += v * clockTick
	}
	return ms
}

// databaseCPU returns the CPU time of all processes of PostgreSQL so far, in ms; 0 for other targets.
func (x target) databaseCPU(t *testing.T) (ms float64) {
	t.Helper()
	if x.database == nil {
		return 0
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(raw, []byte("(postgres)")) {
			continue // it has ended, or is another program
		}
		ms += ticks(raw, 11, 12, 13, 14) // with those that have ended
	}
	return ms
}

// residentMB returns the resident memory of a process.
func residentMB(t *testing.T, pid int) float64 {
	t.Helper()
	if pid == 0 {
		return 0
	}
	raw := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid)))(t)
	pages, _ := strconv.ParseFloat(strings.Fields(string(raw))[1], 64)
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

// newLeanProvider starts a provider that takes almost no CPU: its answer is made once.
func newLeanProvider(t *testing.T) string {
	t.Helper()
	return newPacedProvider(t, answerChunks, 0)
}

// leanAnswer returns the beginning of an answer, one of its words, and its end.
func leanAnswer() (first, word, last string) {
	chunk := func(delta, reason string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + "}]}\n\n"
	}
	return chunk(`{"role":"assistant","content":""}`, "null"), chunk(`{"content":"`+chunkText+`"}`, "null"), chunk(`{}`, `"stop"`) + `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"bench","choices":[],"usage":{"prompt_tokens":60,"completion_tokens":128,"total_tokens":188}}` +
		"\n\ndata: [DONE]\n\n"
}

// newPacedProvider starts a provider whose answers have so many chunks, with a pause before each.
func newPacedProvider(t *testing.T, chunks int, pause time.Duration) string {
	t.Helper()
	first, word, last := leanAnswer()
	whole := []byte(first + strings.Repeat(word, chunks) + last)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if pause == 0 {
			_, _ = w.Write(whole) // who has left needs no answer
			return
		}
		_, _ = io.WriteString(w, first)
		for range chunks {
			process.Pause(r.Context(), pause)
			_, _ = io.WriteString(w, word)
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, last)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// newBobbinTarget starts a Bobbin whose model is the provider, with more lines of settings.
func newBobbinTarget(t *testing.T, den *process.Den, name, provider, database string, lines ...string) target {
	t.Helper()
	settings := fmt.Sprintf("default_llm: bench\ntitles: false\nlog:\n  level: warn\nmodels:\n  - name: bench\n    provider: openai\n    base_url: %s\n"+
		"    context_window: 128000\n    max_output_tokens: 4096\n    api_key_env: HOME\n%s\n", provider, strings.Join(lines, "\n"))
	x := target{name: name, streams: true, file: strings.TrimPrefix(database, "sqlite://")}
	if strings.HasPrefix(database, "postgres:") {
		x.database, x.file = connect(t, database), ""
	}
	url, pid := serve(t, den, settings, database)
	x.pid, x.url = pid, url
	x.newTurns = func(t *testing.T, _ int, stream bool) func() (time.Duration, error) {
		t.Helper()
		path := url + "/api/v1/sessions/" + newSession(t, url) + "/messages"
		accept, end := "application/json", `"status":"succeeded"`
		if stream {
			accept, end = "text/event-stream", "event: run.succeeded"
		}
		return func() (time.Duration, error) {
			return ask(path, accept, map[string]any{"content": messageText}, chunkText, end)
		}
	}
	return x
}

// newProviderTarget returns the provider called directly.
func newProviderTarget(provider string) target {
	return target{name: "the provider alone", streams: true, newTurns: func(*testing.T, int, bool) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			return ask(provider+"/chat/completions", "text/event-stream", map[string]any{"stream": true}, chunkText, "[DONE]")
		}
	}}
}

// client keeps as many connections as there are sessions.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

var errRefused = errors.New("refused")

// ask posts the body and reads the answer, in which the word and the end must be. It returns after
// how long the word came.
func ask(url, accept string, body any, word, end string) (first time.Duration, err error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(raw)) //nolint:noctx // it has no end of its own
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	began := time.Now()
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }() // it is read to its end
	if res.StatusCode >= http.StatusBadRequest {
		_, err := io.Copy(io.Discard, res.Body)
		return 0, errors.Join(fmt.Errorf("%w: %s, Retry-After %q", errRefused, res.Status, res.Header.Get("Retry-After")), err)
	}
	ended := false
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if first == 0 && bytes.Contains(lines.Bytes(), []byte(word)) {
			first = time.Since(began)
		}
		ended = ended || bytes.Contains(lines.Bytes(), []byte(end))
	}
	if !ended || first == 0 {
		return 0, fmt.Errorf("%s: got %s without an end", url, res.Status)
	}
	return first, lines.Err()
}

// medianSeries returns the runs' medians, each figure by itself.
func medianSeries(runs []series) series {
	out := runs[0]
	for _, field := range []func(*series) *float64{
		func(s *series) *float64 { return &s.PerSecond }, func(s *series) *float64 { return &s.First50 }, func(s *series) *float64 { return &s.First99 },
		func(s *series) *float64 { return &s.Whole50 }, func(s *series) *float64 { return &s.Whole99 }, func(s *series) *float64 { return &s.CPU },
		func(s *series) *float64 { return &s.CPUDatabase }, func(s *series) *float64 { return &s.Commits }, func(s *series) *float64 { return &s.WAL },
		func(s *series) *float64 { return &s.Stored }, func(s *series) *float64 { return &s.Allocated }, func(s *series) *float64 { return &s.RSS },
	} {
		var values []float64
		for i := range runs {
			values = append(values, *field(&runs[i]))
		}
		slices.Sort(values)
		*field(&out) = values[len(values)/2]
	}
	return out
}

// printSeries prints the table.
func printSeries(t *testing.T, all []series) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "target\tmode\tsessions\tturns/s\tfirst word p50\tp99\tturn p50\tp99 ms\tCPU ms\tof PostgreSQL\tcommits\tWAL KB\tstored KB\tallocated KB\tRSS MB\t")
	for _, s := range all {
		mode := map[bool]string{true: "stream", false: "wait"}[s.Stream]
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.2f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t\n", s.Target, mode, s.Sessions, s.PerSecond,
			s.First50, s.First99, s.Whole50, s.Whole99, s.CPU, s.CPUDatabase, s.Commits, s.WAL, s.Stored, s.Allocated, s.RSS)
	}
	_ = w.Flush() // into memory
	t.Logf("medians; CPU, commits, WAL and bytes are those of a turn\n%s", b.String())
}

// writeSeries writes the figures as JSON, if a folder is named.
func writeSeries(t *testing.T, all []series) {
	t.Helper()
	dir := os.Getenv("BOBBIN_BENCH_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	figures := must.Get(json.MarshalIndent(all, "", "  "))(t)
	must.Do(t, os.WriteFile(filepath.Join(dir, "bench.json"), append(figures, '\n'), 0o600))
}

// connect connects to PostgreSQL until the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn := must.Get(pgx.Connect(t.Context(), url))(t)
	t.Cleanup(func() { _ = conn.Close(t.Context()) }) // the cluster ends soon
	return conn
}

// loadAverage returns the load of the machine in the last minute.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(raw), " ")
	return one
}

// newSession creates a session and returns its id.
func newSession(t *testing.T, url string) string {
	t.Helper()
	c := must.Get(bobbin.New(bobbin.Options{URL: url}))(t)
	session := must.Get(bobbin.Call(t.Context(), c, ops.CreateSession, ops.NewSession{}))(t)
	return string(session.ID)
}
