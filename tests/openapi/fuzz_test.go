package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// TestFuzz: thousands of requests made from the document, valid, nearly valid and wild, by two owners at
// once: no 500, no answer that the document does not have, no hang, no leak of what is internal or another
// owner's, no goroutine left, and the server works afterwards. BOBBIN_FUZZ_REQUESTS changes how many.
func TestFuzz(t *testing.T) {
	total := seed.Setting("BOBBIN_FUZZ_REQUESTS", 1200)
	// One after the other: goroutines are counted.
	t.Run("sqlite", func(t *testing.T) { showFuzz(t, dbtest.MigratedSQLiteURL(t), total) })
	t.Run("postgres", func(t *testing.T) { showFuzz(t, dbtest.PostgresURL(t), total/4) })
}

func showFuzz(t *testing.T, url string, requests int) {
	t.Helper()
	w := newWorld(t, url)
	f := &fuzz{t: t, w: w, cursors: newPool(), done: map[string]int{}, client: *w.checked}
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
			for range requests / workers {
				f.one(g)
			}
		})
	}
	all.Wait()
	f.healthy()
	for _, op := range f.w.doc.Operations { // what is always refused is not tested
		compare.True(f.t, f.done[op.ID] != 0 || requests < enough, "%s was never answered well", op.ID)
	}
	after := settled(before)
	if after > before+4 {
		stacks := make([]byte, 1<<20)
		t.Errorf("got %d goroutines, want about %d as before:\n%.6000s", after, before, stacks[:runtime.Stack(stacks, true)])
	}
	t.Logf("seed %d, %d requests", seed.Value(), requests)
}

// fuzz is one run of the fuzzer.
type fuzz struct {
	t       *testing.T
	w       *world
	client  http.Client // holds what it sends and gets against the document
	owners  []*owner
	cursors *pool

	mu   sync.Mutex
	done map[string]int // good answers by operation; guarded by mu
}

// Times that an answer may take, and that a stream is looked at.
const (
	hang    = 30 * time.Second
	watched = 120 * time.Millisecond
)

// one sends one request and looks at its answer.
func (f *fuzz) one(g *generator) {
	a := g.next()
	ctx, cancel := context.WithTimeout(f.t.Context(), hang)
	defer cancel()
	var sent io.Reader
	if len(a.body) > 0 {
		sent = bytes.NewReader(a.body)
	}
	client := f.client
	if a.cut {
		sent = io.MultiReader(bytes.NewReader(a.body[:len(a.body)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	if a.cut || a.method == http.MethodHead { // the document says nothing of these
		client.Transport = http.DefaultTransport
	}
	r := must.Get(http.NewRequestWithContext(ctx, a.method, f.w.url+a.path+"?"+a.query, sent))(f.t)
	if sent != nil && g.chance(15) {
		r.ContentLength = -1 // chunked
	}
	for _, h := range a.headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	fault := func(format string, args ...any) {
		f.t.Errorf("%s\n  %s %.300s\n  %.300q\n  body %.300q", fmt.Sprintf(format, args...), a.method, r.URL, a.headers[1:], a.body)
	}
	answer, err := client.Do(r)
	if err != nil {
		if a.wild == valid || ctx.Err() != nil { // else the server may close the connection before it has read everything
			fault("no answer came: %v", err)
		}
		return
	}
	isStream := strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	if isStream {
		defer time.AfterFunc(watched, cancel).Stop()
	}
	body, _ := io.ReadAll(answer.Body) // a stream ends in the middle
	_ = answer.Body.Close()
	if answer.StatusCode == http.StatusInternalServerError {
		fault("an internal error: %.600q", body)
	}
	if word := f.leaks(g, body); word != "" {
		fault("the answer %d shows %q: %.600q", answer.StatusCode, word, body)
	}
	if answer.StatusCode > 299 {
		return
	}
	if a.foreign {
		fault("the other owner's id was taken: %d %.600q", answer.StatusCode, body)
	}
	f.mu.Lock()
	if a.op != nil {
		f.done[a.op.ID]++
	}
	f.mu.Unlock()
	if !isStream {
		f.keepIDs(g.me, answer.Header.Get("Location"), body)
	}
}

// keepIDs keeps what an answer has made, for later requests.
func (f *fuzz) keepIDs(of *owner, location string, body []byte) {
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
	if json.Unmarshal(body, &read) != nil {
		return
	}
	if read.NextCursor != nil {
		f.cursors.add("cursor", *read.NextCursor)
	}
	parts := strings.Split(location, "/")
	if kind, ok := map[string]string{"sessions": "session", "memories": "memory", "blobs": "blob"}[parts[max(0, len(parts)-2)]]; ok && read.ID != "" {
		of.ids.add(kind, read.ID)
	}
	if read.Run.ID != "" {
		of.ids.add("run", read.Run.ID)
	}
	for _, id := range []string{read.Run.UserMessageID, read.Run.AnswerID} {
		if id != "" {
			of.ids.add("message", id)
			of.ids.add("session/message", read.Run.SessionID+"/"+id)
		}
	}
}

// enough is how many requests reach every operation for certain.
const enough = 20_000

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
