package openapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/tests/dbtest"
	"bobbin/tests/document"
	"bobbin/tests/seed"
)

// number returns the setting of the environment, or what holds without.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// TestFuzz: thousands of requests made from the document, valid, nearly valid and
// wild, by two owners at once: no 500, no answer that the document does not have, no
// hang, no leak of what is internal or another owner's, no goroutine left, and the
// server works afterwards. BOBBIN_FUZZ_REQUESTS
// changes how many.
func TestFuzz(t *testing.T) {
	total := number("BOBBIN_FUZZ_REQUESTS", 1200)
	// One after the other: goroutines are counted.
	t.Run("sqlite", func(t *testing.T) { showFuzz(t, dbtest.MigratedSQLiteURL(t), total) })
	t.Run("postgres", func(t *testing.T) { showFuzz(t, dbtest.PostgresURL(t), total/4) })
}

func showFuzz(t *testing.T, url string, requests int) {
	t.Helper()
	w := newWorld(t, url)
	f := &fuzz{t: t, w: w, cursors: newPool(), done: map[string]int{}}
	f.owners = []*owner{w.settle("ada"), w.settle("bob")}
	for _, o := range f.owners {
		for _, list := range []string{"/api/v1/sessions", "/api/v1/sessions/" + o.ids.pick("session", 0) + "/messages", "/api/v1/sessions/" + o.ids.pick("session", 0) + "/runs"} {
			if next, ok := w.must(o, "GET", list+"?limit=1", nil)["next_cursor"].(string); ok {
				f.cursors.add("cursor", next)
			}
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	before := runtime.NumGoroutine()
	workers := 1
	if seed.IsChosen() {
		workers = 8
	}
	var all sync.WaitGroup
	for i := range workers {
		g := &generator{Rand: seed.Rand(f.t, uint64(i)), doc: f.w.doc, me: f.owners[i%2], other: f.owners[1-i%2], cursors: f.cursors}
		all.Go(func() {
			line := wire{host: f.w.host}
			defer line.close()
			for range requests / workers {
				f.one(g, &line)
			}
		})
	}
	all.Wait()
	f.healthy()
	for _, op := range f.w.doc.Operations { // what is always refused is not tested
		if f.done[op.ID] == 0 && requests >= enough {
			f.t.Errorf("%s was never answered well", op.ID)
		}
	}
	after := settled(before)
	if after > before+4 {
		stacks := make([]byte, 1<<20)
		t.Errorf("got %d goroutines, want about %d as before:\n%.6000s", after, before, stacks[:runtime.Stack(stacks, true)])
	}
	t.Logf("seed %d, %d requests, %d faults", seed.Value(), requests, f.faults)
}

// fuzz is one run of the fuzzer.
type fuzz struct {
	t       *testing.T
	w       *world
	owners  []*owner
	cursors *pool

	mu     sync.Mutex
	done   map[string]int // good answers by operation; guarded by mu
	faults int            // guarded by mu
}

// one sends one request and looks at its answer.
func (f *fuzz) one(g *generator, line *wire) {
	a := g.next()
	chunked := g.chance(15)
	got, err := line.send(a, chunked)
	if a.op != nil && got.status > 0 && got.status < 300 {
		f.mu.Lock()
		f.done[a.op.ID]++
		f.mu.Unlock()
	}
	if err != nil {
		f.fault(a, got, "no answer came: %v", err)
		return
	}
	f.judge(g, a, got)
	if got.status > 299 || got.stream {
		return
	}
	var read struct {
		ID         string  `json:"id"`
		NextCursor *string `json:"next_cursor"`
		Run        struct {
			ID            string `json:"id"`
			SessionID     string `json:"session_id"`
			UserMessageID string `json:"user_message_id"`
			AnswerID      string `json:"answer_id"`
		} `json:"run"`
	}
	if json.Unmarshal(got.body, &read) != nil {
		return
	}
	if read.NextCursor != nil {
		f.cursors.add("cursor", *read.NextCursor)
	}
	parts := strings.Split(got.header.Get("Location"), "/")
	if kind, ok := map[string]string{"sessions": "session", "memories": "memory", "blobs": "blob"}[parts[max(0, len(parts)-2)]]; ok && read.ID != "" {
		g.me.ids.add(kind, read.ID)
	}
	for kind, id := range map[string]string{"run": read.Run.ID, "message": read.Run.UserMessageID} {
		if id != "" {
			g.me.ids.add(kind, id)
		}
	}
	if id := cmp.Or(read.Run.AnswerID, read.Run.UserMessageID); id != "" {
		g.me.ids.add("message", id)
		g.me.ids.add("session/message", read.Run.SessionID+"/"+id)
		g.me.ids.add("session/message", read.Run.SessionID+"/"+read.Run.UserMessageID)
	}
}

// enough is how many requests reach every operation for certain.
const enough = 20_000

func (f *fuzz) fault(a asked, got reply, format string, args ...any) {
	f.mu.Lock()
	f.faults++
	many := f.faults > 15
	f.mu.Unlock()
	if many {
		return
	}
	f.t.Errorf("%s\n  %s %.300s?%.300s\n  %.300q\n  body %.300q\n  answer %d %.600q", fmt.Sprintf(format, args...),
		a.method, a.path, a.query, a.headers[1:], a.body, got.status, got.body)
}

// judge says what is wrong with an answer.
func (f *fuzz) judge(g *generator, a asked, got reply) {
	switch {
	case got.status == 0 || got.status == 499: // the caller had gone, or is none of HTTP
		if a.wild != wild {
			f.fault(a, got, "the connection was closed")
		}
		return
	case got.status == http.StatusInternalServerError:
		f.fault(a, got, "an internal error")
		return
	case below(got) && a.wild != valid:
		return
	}
	if word := f.leaks(g, got.body); word != "" {
		f.fault(a, got, "the answer shows %q", word)
	}
	if a.foreign && got.status < 300 {
		f.fault(a, got, "the other owner's id was taken")
	}
	path, _, _ := strings.Cut(a.path, "?")
	op := f.w.doc.Find(a.method, path)
	if op == nil && a.method == http.MethodHead && f.w.doc.Find(http.MethodGet, path) != nil {
		return // the header of that
	}
	if op == nil {
		if got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed && got.status != http.StatusRequestEntityTooLarge {
			f.fault(a, got, "nothing is there in the document")
		}
		return
	}
	if err := op.CheckAnswer(got.status, got.header, got.body); err != nil && !got.stream {
		f.fault(a, got, "the answer is not in the document: %v", err)
	}
	if got.stream {
		f.frames(op, a, got)
	}
	probe := len(op.Answers) > 0 && !strings.HasPrefix(op.Path, "/api/") // takes whatever a probe adds
	if got.status > 299 || a.cut || probe {
		return
	}
	r, err := http.NewRequest(a.method, "http://x/?"+a.query, nil)
	if err != nil {
		return
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Content-Type" && r.Header.Get(name) == "" {
			r.Header.Set(name, value)
		}
	}
	if replayed := got.header.Get("Idempotency-Replayed") != ""; replayed {
		return
	}
	if err := op.CheckRequest(r, a.body); err != nil {
		f.fault(a, got, "the document refuses what was taken: %v", err)
	}
}

func (f *fuzz) frames(op *document.Operation, a asked, got reply) {
	for frame := range bytes.SplitSeq(got.body, []byte("\n\n")) {
		name, data, ok := document.Frame(frame)
		if !ok {
			continue
		}
		if err := op.Answers[got.status].CheckEvent(name, data); err != nil {
			f.fault(a, got, "%v", err)
		}
	}
}

// below reports whether the answer is of the HTTP server itself, to what is no HTTP.
func below(got reply) bool {
	plain := strings.HasPrefix(got.header.Get("Content-Type"), "text/plain") || len(got.body) == 0
	switch got.status {
	case http.StatusBadRequest, http.StatusExpectationFailed, http.StatusRequestHeaderFieldsTooLarge, http.StatusNotImplemented:
		return plain
	}
	return false
}

// leaks returns what an answer shows that is nobody's business.
func (f *fuzz) leaks(g *generator, body []byte) string {
	text := string(body)
	for _, word := range []string{"SQLSTATE", "sqlite", "SQL logic", "gorm", "goroutine ", ".go:", "runtime error", "constraint failed", "SELECT ", "INSERT ", f.w.dir, "/work/", "postgres://", g.other.marker, g.other.key, g.me.key} {
		if strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

// healthy checks that the server still works, for both owners.
func (f *fuzz) healthy() {
	for _, o := range f.owners {
		session := f.w.must(o, "POST", "/api/v1/sessions", nil)["id"].(string)
		said := f.w.must(o, "POST", "/api/v1/sessions/"+session+"/messages", map[string]any{"content": "still there?"})
		if message, ok := said["message"].(map[string]any); !ok || !strings.Contains(message["content"].(string), "still there?") {
			f.t.Errorf("got %v, want an answer", said)
		}
	}
	f.w.must(f.owners[0], "GET", "/readyz", nil)
	if text := f.w.log.String(); strings.Contains(text, "panic") || strings.Contains(text, "level=ERROR") {
		f.t.Errorf("the log has errors:\n%.3000s", text)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// settled waits until there are as few goroutines as before, or not any fewer.
func settled(before int) int {
	deadline := time.Now().Add(time.Minute)
	for {
		now := runtime.NumGoroutine()
		if now <= before+4 || time.Now().After(deadline) {
			return now
		}
		runtime.GC()
		<-time.After(50 * time.Millisecond)
	}
}
