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
	dbtest.EachURL(t, func(t *testing.T, database string) {
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
	dbtest.EachURL(t, func(t *testing.T, database string) {
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

// overloadTime is how long messages come faster than they can be answered.
const overloadTime = 20 * time.Second

// What is answered when three times as many messages come as can be answered: by 64 sessions whose
// next message follows each answer, then by 3,000 at a rate that does not depend on answers.
func TestShowOverload(t *testing.T) {
	onlyLong(t)
	den := must.Get(process.Open("bench"))(t)
	t.Cleanup(den.Close)
	p := newLeanProvider(t)
	dbtest.EachURL(t, func(t *testing.T, url string) {
		x := newBobbinTarget(t, den, t.Name(), p, url)
		x.measure(t, 64, 5, true)
		peak := x.measure(t, 64, 50, true)
		free := make(chan func() (time.Duration, error), 3_000)
		for n := range cap(free) {
			free <- x.newTurns(t, n, true)
		}
		cpu, database := cpuOf(t, x.pid), x.databaseCPU(t)
		o := x.overload(t, 3*peak.PerSecond, free)
		cpu, database = cpuOf(t, x.pid)-cpu, x.databaseCPU(t)-database
		slices.Sort(o.first)
		rate := float64(len(o.first)) / o.took.Seconds()
		t.Logf("peak %.0f turns/s; at %.0f messages/s: %.0f answered/s (%.0f %% of the peak), %d refused, %d without a free session, first word p50 %.0f, p99 %.0f ms, "+
			"all done after %.1f s; CPU beyond that of answers at the peak: %.2f ms a refusal", peak.PerSecond, 3*peak.PerSecond, rate, 100*rate/peak.PerSecond, o.refused, o.missing,
			o.first[len(o.first)/2], o.first[len(o.first)*99/100], o.took.Seconds(), (cpu+database-(peak.CPU+peak.CPUDatabase)*float64(len(o.first)))/float64(max(o.refused, 1)))
		for reason, n := range o.reasons {
			t.Logf("%d × %s", n, reason)
		}
	})
}

// overloaded is what became of the messages.
type overloaded struct {
	mu      sync.Mutex
	first   []float64 // ms until the first word, of those that were answered
	refused int
	missing int // no session was free
	reasons map[string]int
	took    time.Duration // until the last answer
}

// overload sends messages at a rate, each in a free session.
func (x target) overload(t *testing.T, perSecond float64, free chan func() (time.Duration, error)) *overloaded {
	t.Helper()
	o := &overloaded{reasons: map[string]int{}}
	var open sync.WaitGroup
	began := time.Now()
	for n := 0; time.Since(began) < overloadTime; n++ {
		process.Pause(t.Context(), time.Until(began.Add(time.Duration(float64(n)/perSecond*float64(time.Second)))))
		select {
		case turn := <-free:
			open.Go(func() {
				word, err := turn()
				o.mu.Lock()
				defer o.mu.Unlock()
				switch {
				case err == nil:
					o.first = append(o.first, word.Seconds()*1e3)
				case errors.Is(err, errRefused):
					o.refused++
					o.reasons[err.Error()]++
				default:
					o.reasons[err.Error()]++
				}
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
