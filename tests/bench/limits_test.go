package bench_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	bobbin "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// onlyLong skips what takes minutes of a quiet machine.
func onlyLong(t *testing.T) {
	t.Helper()
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		t.Skip("set BOBBIN_TEST_LONG=1, or use make show-limits")
	}
}

// eachURL runs the measurement on SQLite, then on PostgreSQL: not at the same time.
func eachURL(t *testing.T, measure func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { measure(t, dbtest.SQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) { measure(t, dbtest.PostgresURL(t)) })
}

// growthText is as long as messageText, and sets nothing for later: a real conversation has such a message now and then.
const growthText = "I moved the herons' feeding times to the early morning, since the visitors come later now. The notice at the gate is older than that, " +
	"and somebody has painted over half of it. Which times did the last one name, and what stood below them?"

// What a turn takes at the beginning and at the end of a session with 2,000, at a window of 128,000 tokens, whose
// messages are summarized many times.
func TestShowGrowth(t *testing.T) {
	onlyLong(t)
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	p := must.Get(provider.New(provider.Options{Window: 128_000, Say: func(string) string { return strings.Repeat(chunkText, answerChunks) }}))(t)
	t.Cleanup(p.Close)
	eachURL(t, func(t *testing.T, database string) {
		x := newBobbinTarget(t, den, t.Name(), p.URL, database)
		path := x.url + "/api/v1/sessions/" + newSession(t, x.url) + "/messages"
		turn := []func() (time.Duration, error){func() (time.Duration, error) {
			return ask(path, "text/event-stream", map[string]any{"content": growthText}, chunkText, "event: run.succeeded")
		}}
		x.measureOf(t, turn, 20, true)
		early := x.measureOf(t, turn, 50, true)
		x.measureOf(t, turn, 1_880, true)
		late := x.measureOf(t, turn, 50, true)
		printSeries(t, []series{early, late})
		t.Logf("turns 1,951 to 2,000 against 21 to 70: time %.2f, CPU %.2f, of PostgreSQL %.2f, WAL %.2f; %d summaries",
			late.Whole50/early.Whole50, late.CPU/early.CPU, late.CPUDatabase/early.CPUDatabase, late.WAL/early.WAL, p.Summaries())
	})
}

// What a turn takes where everything is sent, a prompt of 4 MB at a window of ten million tokens.
func TestShowLargePrompts(t *testing.T) {
	onlyLong(t)
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	var largest atomic.Int64
	first, word, last := leanAnswer()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body) // a client that has left needs no answer
		largest.Store(max(largest.Load(), n))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first+strings.Repeat(word, answerChunks)+last)
	}))
	t.Cleanup(server.Close)
	eachURL(t, func(t *testing.T, database string) {
		x := newBobbinTarget(t, den, t.Name(), server.URL+"/v1", database,
			fmt.Sprintf("  - {name: large, provider: openai, base_url: %s/v1, context_window: 10000000, max_output_tokens: 4096, api_key_env: HOME}", server.URL))
		path := x.url + "/api/v1/sessions/" + newSession(t, x.url) + "/messages"
		for n := range 400 {
			text := fmt.Sprintf("Part %d. %s", n, strings.Repeat(messageText+" ", 48))
			must.Get(ask(path, "application/json", map[string]any{"content": text, "run": false}, `"seq"`, `"seq"`))(t)
		}
		turn := func() (time.Duration, error) {
			return ask(path, "text/event-stream", map[string]any{"content": messageText, "model": "large"}, chunkText, "event: run.succeeded")
		}
		x.measureOf(t, []func() (time.Duration, error){turn}, 3, true)
		s := x.measureOf(t, []func() (time.Duration, error){turn}, 20, true)
		mb := float64(largest.Load()) / 1e6
		t.Logf("a prompt of %.1f MB: %.0f ms, CPU %.1f ms, of PostgreSQL %.1f ms: %.1f ms of CPU a MB; allocated %.1f MB", mb, s.Whole50, s.CPU, s.CPUDatabase, (s.CPU+s.CPUDatabase)/mb, s.Allocated/1024)
	})
}

// How long messages come at one rate.
const (
	rampTime     = 8 * time.Second
	overloadTime = 20 * time.Second
)

// What is answered when messages come three times as fast as they can be answered, in 3,000 sessions and
// at a rate that does not depend on the answers. The peak is the highest rate of answers while the rate of
// messages grows.
func TestShowOverload(t *testing.T) {
	onlyLong(t)
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	p := newLeanProvider(t)
	refusal := refusalCPU(t)
	eachURL(t, func(t *testing.T, url string) {
		x := newBobbinTarget(t, den, t.Name(), p, url)
		x.measure(t, 16, 5, true)
		free := make(chan func() (time.Duration, error), 3_000)
		for n := range cap(free) {
			free <- x.newTurns(t, n, true)
		}
		peak := x.findPeak(t, free)
		o := x.offer(t, 3*peak, overloadTime, free)
		slices.Sort(o.first)
		rate := float64(len(o.first)) / o.took.Seconds()
		t.Logf("peak %.0f turns/s; at %.0f messages/s: %.0f answered/s (%.0f %% of the peak), %d refused, %d without a free session, first word p50 %.0f, p99 %.0f ms, "+
			"all done after %.1f s; a refusal takes %.3f ms of CPU with its client", peak, 3*peak, rate, 100*rate/peak, o.refused, o.missing,
			o.first[len(o.first)/2], o.first[len(o.first)*99/100], o.took.Seconds(), refusal)
		for reason, n := range o.reasons {
			t.Logf("%d × %s", n, reason)
		}
	})
}

// findPeak offers messages at rates that grow by 1.3 until fewer than 95 % are answered while they come, at two
// rates in a row, and returns the highest rate of answers.
func (x target) findPeak(t *testing.T, free chan func() (time.Duration, error)) (peak float64) {
	t.Helper()
	for rate, behind := 50.0, 0; behind < 2; rate *= 1.3 {
		o := x.offer(t, rate, rampTime, free)
		answered := float64(o.inTime) / rampTime.Seconds()
		t.Logf("%.0f messages/s: %.0f answered/s, %d refused, %d without a free session", rate, answered, o.refused, o.missing)
		if peak, behind = max(peak, answered), behind+1; answered >= 0.95*rate {
			behind = 0
		}
	}
	return peak
}

// refusalCPU returns the CPU of a refused message in ms, of the server and its client: an idle server in this
// process refuses all.
func refusalCPU(t *testing.T) float64 {
	t.Helper()
	opts := apptest.New(t, dbtest.MigratedSQLiteURL(t)).App.API()
	opts.Auth, opts.Overloaded = auth.New(auth.Options{}), func() bool { return true }
	s := httptest.NewServer(api.New(opts))
	t.Cleanup(s.Close)
	const requests = 20_000
	cpu := cpuOf(t, 0)
	for range requests {
		_, err := ask(s.URL+"/api/v1/sessions/x/messages", "text/event-stream", map[string]any{"content": messageText}, "", "")
		if !errors.Is(err, errRefused) {
			t.Fatalf("got %v, want a refusal", err)
		}
	}
	return (cpuOf(t, 0) - cpu) / requests
}

// overloaded is what became of the messages.
type overloaded struct {
	mu      sync.Mutex
	first   []float64 // ms until the first word, of those that were answered
	inTime  int       // of them, while messages came
	refused int
	missing int // no session was free
	reasons map[string]int
	took    time.Duration // until the last answer
}

// offer sends messages at a rate for the time, each in a free session.
func (x target) offer(t *testing.T, perSecond float64, d time.Duration, free chan func() (time.Duration, error)) *overloaded {
	t.Helper()
	o := &overloaded{reasons: map[string]int{}}
	var open sync.WaitGroup
	began := time.Now()
	for n := 0; time.Since(began) < d; n++ {
		process.Pause(t.Context(), time.Until(began.Add(time.Duration(float64(n)/perSecond*float64(time.Second)))))
		select {
		case turn := <-free:
			open.Go(func() {
				word, err := turn()
				o.count(word, err, time.Since(began) <= d)
				free <- turn
			})
		default:
			o.mu.Lock()
			o.missing++
			o.mu.Unlock()
		}
	}
	open.Wait()
	o.took = time.Since(began)
	return o
}

// count counts what became of one message.
func (o *overloaded) count(word time.Duration, err error, inTime bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.reasons[err.Error()]++
	}
	switch {
	case err == nil:
		if o.first = append(o.first, word.Seconds()*1e3); inTime {
			o.inTime++
		}
	case errors.Is(err, errRefused):
		o.refused++
	}
}

// Streams of one owner, from a model that says one word and then nothing until each stream has its word
// or has been told that it waits: nothing is refused, and each gets its word in the end. The short form
// has places for half of them, the long one the default limits.
func TestShowMany(t *testing.T) {
	streams, settings := 64, "limits: {concurrent_runs: 32}"
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		streams, settings = 2000, ""
	}
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	eachURL(t, func(t *testing.T, url string) {
		m := &manyStreams{told: make(chan struct{}), left: streams}
		model := httptest.NewServer(m)
		t.Cleanup(model.Close)
		t.Cleanup(m.release) // a stream that failed keeps the others waiting
		x := newBobbinTarget(t, den, t.Name(), model.URL+"/v1", url, settings)
		c := must.Get(bobbin.New(bobbin.Options{URL: x.url, HTTP: &http.Client{Transport: process.PatientTransport{Transport: &http.Transport{}}}}))(t)
		var open sync.WaitGroup
		var sessions []core.SessionID
		for range streams {
			sessions = append(sessions, core.SessionID(newSession(t, x.url)))
		}
		before, cpu, began := residentMB(t, x.pid), cpuOf(t, x.pid), time.Now()
		for _, id := range sessions {
			open.Go(func() { m.read(t, c, id) })
		}
		<-m.told
		held, took := residentMB(t, x.pid), time.Since(began)
		open.Wait()
		slices.Sort(m.first)
		if len(m.first) != streams || settings != "" && m.queued != streams/2 {
			t.Fatalf("%d of %d streams got a word, %d were told that they wait; want all, and half", len(m.first), streams, m.queued)
		}
		t.Logf("%d slow streams of one owner, %d queued first: all know after %.1f s; first word p50 %v, max %v; RSS %.0f MB, then %.0f MB, %.0f KB a stream; CPU %.1f s", streams, m.queued, took.Seconds(),
			m.first[streams/2].Round(time.Millisecond), m.first[streams-1].Round(time.Millisecond), before, held, 1024*(held-before)/float64(streams), (cpuOf(t, x.pid)-cpu)/1e3)
	})
}

// manyStreams is the model, and what is known of the streams.
type manyStreams struct {
	told chan struct{} // closed when each stream has its first word, or knows that it waits
	once sync.Once

	mu     sync.Mutex
	left   int             // that do not know yet; guarded by mu
	queued int             // guarded by mu
	first  []time.Duration // until the first word; guarded by mu
}

func (m *manyStreams) release() { m.once.Do(func() { close(m.told) }) }

// ServeHTTP answers a request of Bobbin's.
func (m *manyStreams) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	first, word, last := leanAnswer()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, first+word) // who has gone is of no interest
	w.(http.Flusher).Flush()
	<-m.told
	_, _ = io.WriteString(w, last)
}

// read sends a message and reads its stream to the end.
func (m *manyStreams) read(t *testing.T, c *bobbin.Client, id core.SessionID) {
	asked, waits, known := time.Now(), false, false
	for e, err := range apptest.Send(t.Context(), c, core.SendMessage{SessionID: id, Content: "Speak."}) {
		if err != nil {
			t.Error(err)
			m.release()
			return
		}
		m.mu.Lock()
		isWord := e.Type == core.EventMessageDelta && !known
		if isWord {
			known, m.first = true, append(m.first, time.Since(asked))
		}
		if e.Type == core.EventRunQueued {
			waits, m.queued = true, m.queued+1
		}
		if e.Type == core.EventRunQueued || isWord && !waits {
			m.left--
		}
		if m.left == 0 {
			m.release()
		}
		m.mu.Unlock()
	}
}
