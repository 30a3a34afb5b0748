package bench_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	bobbin "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

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
