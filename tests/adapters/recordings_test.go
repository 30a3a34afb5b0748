// Package adapters_test holds the adapters of language models against each other:
// the same scenarios, played by a scripted provider in each adapter's dialect,
// have the same outcome for the caller.
package adapters_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// recorded are the requests whose bodies are kept in testdata, byte for byte.
func recorded() map[string]llm.Request {
	user := func(s string) llm.Message { return llm.Message{Role: core.RoleUser, Content: s} }
	calc := llm.ToolSpec{Name: "calculator", Description: "Works out an expression.", Parameters: json.RawMessage(`{"type":"object","properties":{"expression":{"type":"string"}},"required":["expression"],"additionalProperties":false}`)}
	clock := llm.ToolSpec{Name: "current_time", Description: "Says what time it is."}
	zero := 0.0
	turn := []llm.Message{
		user("What is 1+1, and what time is it?"),
		{Role: core.RoleAssistant, Content: "Let me see.", ToolCalls: []core.ToolCall{
			{ID: "call_1", Name: "calculator", Arguments: `{ "expression" : "1+1",  "big": 12345678901234567890 }`},
			{ID: "call.2/β", Name: "current_time"},
		}},
		{Role: core.RoleTool, ToolCallID: "call_1", ToolName: "calculator", Content: "2"},
		{Role: core.RoleTool, ToolCallID: "call.2/β", ToolName: "current_time", Content: ""},
	}
	thinking := []llm.Message{
		user("Think."),
		{Role: core.RoleAssistant, Content: "First. Then.", Parts: []core.Part{
			{Type: "reasoning", Text: "a thought", Signature: "c2ln", Origin: "anthropic/claude-sonnet-4-5"},
			{Type: "reasoning", Name: "redacted", Signature: "aGlkZGVu", Origin: "anthropic/claude-sonnet-4-5", Offset: 6},
		}, ToolCalls: []core.ToolCall{{ID: "call_1", Name: "current_time", Arguments: "{}"}}},
		{Role: core.RoleTool, ToolCallID: "call_1", ToolName: "current_time", Content: "noon"},
	}
	system := []string{"You are kind.", "Summary of earlier conversation: …", "Use the tools."}
	tools := []llm.ToolSpec{calc, clock}
	return map[string]llm.Request{
		"hello":     {Messages: []llm.Message{user("Hello!")}},
		"tools":     {System: system, Tools: tools, Messages: turn, MaxOutputTokens: 4_096},
		"last-word": {System: system[:1], Tools: tools, ToolChoice: core.ToolChoiceNone, Messages: append(turn[:4:4], user("And in words?")), MaxOutputTokens: 4_096},
		"no-tools":  {System: system[:1], Messages: append(turn[:4:4], user("And in words?"))},
		"thinking":  {System: system, Tools: tools, Messages: thinking, MaxOutputTokens: 8_192},
		"summary":   {System: []string{"Summarize."}, Messages: []llm.Message{user("user: Hello!\nassistant: Hi.")}, MaxOutputTokens: 1_500, Temperature: &zero},
		"unicode":   {Messages: []llm.Message{user("Grüße 世界 👋 <b>&\u2028 \"quoted\" \\ back"), {Role: core.RoleAssistant, Content: ""}, user(" \n"), user("Still there?")}},
	}
}

// TestRecordings: the same prompt is the same bytes on the wire. Run with -update to record anew.
func TestRecordings(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		for name, req := range recorded() {
			t.Run(d.label()+"/"+name, func(t *testing.T) {
				t.Parallel()
				server := start(t, d, play(text("ok"), end(core.FinishStop)))
				model := server.model(t, settings{thinking: 4_096})
				if d.cloud.name != "" {
					req = thoughtBy(req, model.Info().ThoughtOrigin)
				}
				for range 2 {
					must.Get(llm.Collect(model.Stream(t.Context(), req), nil))(t)
				}
				got := server.Received()
				compare.Equal(t, "two bodies of one request", string(got[0].Body), string(got[1].Body))
				golden.Check(t, "testdata/requests/"+name+"."+cmp.Or(d.cloud.recording, d.name)+".json", string(got[0].Body)+"\n")
			})
		}
	}
}

// thoughtBy returns the request with its thoughts as those of another provider.
func thoughtBy(req llm.Request, origin string) llm.Request {
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		parts := slices.Clone(m.Parts)
		for j := range parts {
			if parts[j].Origin == "anthropic/claude-sonnet-4-5" {
				parts[j].Origin = origin
			}
		}
		req.Messages[i].Parts = parts
	}
	return req
}

// TestPrefixGrowsAtItsEnd: a conversation that goes on changes nothing of what was
// sent before but the mark at its end, so that the provider's cache holds
// (R5).
func TestPrefixGrowsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, d := range dialects() {
		t.Run(d.label(), func(t *testing.T) {
			t.Parallel()
			server := start(t, d, play(text("ok"), end(core.FinishStop)))
			model := server.model(t, settings{})
			req := recorded()["tools"]
			for _, more := range [][]llm.Message{nil, {{Role: core.RoleAssistant, Content: "2."}, {Role: core.RoleUser, Content: "Thanks."}}} {
				req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], more...)
				must.Get(llm.Collect(model.Stream(t.Context(), req), nil))(t)
			}
			got := server.Received()
			mark := []byte(`"cache_control":{"type":"ephemeral"},`)
			for _, part := range []string{"system", "instructions", "tools"} {
				compare.Equal(t, part, string(member(t, got[0].Body, part)), string(member(t, got[1].Body, part)))
			}
			before := bytes.ReplaceAll(member(t, got[0].Body, d.messages), mark, nil)
			after := bytes.ReplaceAll(member(t, got[1].Body, d.messages), mark, nil)
			compare.True(t, bytes.HasPrefix(after, bytes.TrimSuffix(before, []byte("]"))), "got\n%s\nwant it to begin with\n%s", after, before)
			if n := bytes.Count(got[1].Body, []byte(`"cache_control"`)); d.name == "anthropic" && n != 4 {
				t.Errorf("got %d cache breakpoints, want 4", n)
			}
		})
	}
}

// member returns a member of a JSON object as it was written.
func member(t *testing.T, body []byte, name string) []byte {
	t.Helper()
	var object map[string]json.RawMessage
	must.Do(t, json.Unmarshal(body, &object))
	return object[name]
}

// keysIn returns what looks like a key in the text.
func keysIn(text []byte) []string {
	var found []string
	for _, like := range []*regexp.Regexp{
		regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`),
		regexp.MustCompile(`\bAIza[A-Za-z0-9_-]{8,}`),
		regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{8,}`),
		regexp.MustCompile(`(?i)\bBearer\s+[A-Za-z0-9._~+/-]{8,}`),
	} {
		for _, m := range like.FindAll(text, -1) {
			found = append(found, string(m[:min(len(m), 8)])+"…")
		}
	}
	return found
}

// TestNoKeysInRecordings: no file under any testdata holds something like a key
// (CONVENTIONS: tests).
func TestNoKeysInRecordings(t *testing.T) {
	t.Parallel()
	files := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "testdata") {
			return nil
		}
		files++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range keysIn(text) {
			t.Errorf("%s holds something like a key: %s", path, found)
		}
		return nil
	})
	must.Do(t, err)
	compare.True(t, files >= len(recorded())*2, "got %d files under testdata, want the recordings at least", files)
}

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
