// Package adapters_test holds the adapters of language models against each other:
// the same scenarios, played by a scripted provider in each adapter's dialect,
// have the same outcome for the caller.
package adapters_test

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// baseURL is where the scripted provider is.
const baseURL = llmtest.MemoryURL

// key is the API key of the tests. It is no key: nothing may look like one here.
const key = "the-key-of-the-tests"

// server is a scripted provider in memory.
type server struct {
	*llmtest.Server

	dialect dialect
}

// start starts a provider that plays the scene on every request.
func start(t *testing.T, d dialect, scene func(*stage)) *server {
	t.Helper()
	s := &server{dialect: d}
	var count atomic.Int64
	s.Server = llmtest.ServeInMemory(t, func(w http.ResponseWriter, r *http.Request) {
		n := int(count.Add(1))
		play := func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // it is in memory
			scene(&stage{dialect: d, w: w, r: r, body: body, n: n})
		}
		if d.cloud.rules == nil {
			play(w, r)
			return
		}
		d.cloud.rules.Wrap(http.HandlerFunc(play)).ServeHTTP(w, r)
	})
	return s
}

// model returns a model of the server's dialect that talks to it.
func (s *server) model(t *testing.T, with settings) llm.Model {
	t.Helper()
	return must.Get(s.dialect.open(s.Transport, with))(t)
}

// stage is where one request is answered.
type stage struct {
	dialect dialect
	w       http.ResponseWriter
	r       *http.Request
	body    []byte
	n       int // which request it is: 1, 2 …
	writer  writer
}

// say sends the pieces, each at once.
func (s *stage) say(pieces ...piece) {
	if s.writer == nil {
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.writer = s.dialect.writer()
	}
	for _, p := range pieces {
		for _, event := range s.writer.events(p) {
			s.raw(event)
		}
	}
}

// raw sends text as it is.
func (s *stage) raw(text string) {
	fmt.Fprint(s.w, text) // the caller may have gone away
	s.w.(http.Flusher).Flush()
}

// pause waits, unless the caller goes away.
func (s *stage) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.r.Context().Done():
	}
}

// hang waits until the caller has gone away.
func (s *stage) hang() { <-s.r.Context().Done() }

// refuse answers with a status and the dialect's body of an error.
func (s *stage) refuse(status int, word, sentence string, header ...string) {
	for i := 0; i+1 < len(header); i += 2 {
		s.w.Header().Set(header[i], header[i+1])
	}
	s.w.Header().Set("Content-Type", "application/json")
	s.w.WriteHeader(status)
	fmt.Fprint(s.w, s.dialect.failure(word, sentence))
}
