package conformance_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
)

// maxOverNative is how much later than natively the first word of a stream may come in another
// protocol: of the fastest tenth, in the long form alone.
const maxOverNative = time.Millisecond

// How long the first word of an answer takes in each protocol, the native one beside them. MCP has
// the answer when the run has ended, so a native turn that is waited for is beside it.
func TestShowFirstByte(t *testing.T) {
	const long = 200
	turns := 3
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		turns = long
	}
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	newSession := func() core.SessionID {
		session, err := b.CreateSession(t.Context(), core.Session{Agent: "plain"})
		must(t, err)
		return session.ID
	}
	native, waited, mcp2025, mcp2026 := newSession(), newSession(), newSession(), newSession()
	page := &streamClient{bobbin: b}
	protocols := []struct {
		name   string
		native int // the row that it is compared with
		ask    func(t *testing.T, q string) time.Duration
	}{
		{"native", 0, func(t *testing.T, q string) time.Duration {
			t.Helper()
			first, _ := b.readFirst(t, "/api/v1/sessions/"+string(native)+"/messages", object{"content": q}, nil)
			return first
		}},
		{"chat completions, whole history", 0, page.chat},
		{"chat completions, no session", 0, func(t *testing.T, q string) time.Duration {
			t.Helper()
			first, _ := b.readFirst(t, "/v1/chat/completions", object{"model": "plain", "stream": true, "messages": []any{user(q)}}, nil)
			return first
		}},
		{"responses, a conversation", 0, page.response},
		{"native, waited for", 4, func(t *testing.T, q string) time.Duration {
			t.Helper()
			first, _ := b.readFirst(t, "/api/v1/sessions/"+string(waited)+"/messages", object{"content": q}, map[string]string{"Accept": "application/json"})
			return first
		}},
		{"MCP " + revision2026 + ", send_message", 4, func(t *testing.T, q string) time.Duration {
			t.Helper()
			return b.readMCP(t, q, mcp2026, revision2026)
		}},
		{"MCP " + revision2025 + ", send_message", 4, func(t *testing.T, q string) time.Duration {
			t.Helper()
			return b.readMCP(t, q, mcp2025, revision2025)
		}},
	}
	times := make([][]time.Duration, len(protocols))
	for range turns {
		for i, p := range protocols { // in turn, so that all have the same machine
			times[i] = append(times[i], p.ask(t, "hello"))
		}
	}
	rows := [][]string{{"protocol", "turns", "first word, median", "over native", "fastest tenth", "over native"}}
	for i := range times {
		slices.Sort(times[i])
	}
	for i, p := range protocols {
		row := []string{p.name, strconv.Itoa(turns)}
		for _, at := range []int{turns / 2, turns / 10} { // a busy machine blurs the median more
			took, native := times[i][at], times[p.native][at]
			row = append(row, took.Round(10*time.Microsecond).String(), (took - native).Round(10*time.Microsecond).String())
		}
		rows = append(rows, row)
		fastest := turns / 10
		if over := times[i][fastest] - times[p.native][fastest]; turns == long && p.native == 0 && over > maxOverNative {
			t.Errorf("%s: the fastest tenth takes %s more than native, want at most %s", p.name, over, maxOverNative)
		}
	}
	logTable(t, rows)
}

// streamClient is a client with a conversation in each protocol.
type streamClient struct {
	*bobbin

	history      []any
	conversation string
}

func (s *streamClient) chat(t *testing.T, q string) time.Duration {
	t.Helper()
	s.history = append(s.history, user(q))
	first, _ := s.readFirst(t, "/v1/chat/completions", object{"model": "plain", "stream": true, "messages": s.history, "metadata": object{"session_id": "first"}}, nil)
	s.history = append(s.history, assistant("answer to: "+q))
	return first
}

func (s *streamClient) response(t *testing.T, q string) time.Duration {
	t.Helper()
	body := object{"model": "plain", "stream": true, "input": q}
	if s.conversation != "" {
		body["conversation"] = s.conversation
	}
	first, frames := s.readFirst(t, "/v1/responses", body, nil)
	s.conversation = decode[responseEvent](t, frames).Response.Conversation.ID
	return first
}

// readMCP calls send_message and returns after how long the answer came.
func (b *bobbin) readMCP(t *testing.T, q string, session core.SessionID, revision string) time.Duration {
	t.Helper()
	params := object{"name": "send_message", "arguments": object{"session_id": session, "content": q}}
	if revision == revision2026 {
		const prefix = "io.modelcontextprotocol/"
		params["_meta"] = object{prefix + "protocolVersion": revision, prefix + "clientInfo": object{"name": "hand", "version": "1"}, prefix + "clientCapabilities": object{}}
	}
	first, _ := b.readFirst(t, "/mcp", object{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, map[string]string{
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision, "Mcp-Method": "tools/call", "Mcp-Name": "send_message",
	})
	return first
}

// readFirst posts the body, with more headers, and returns after how long the first word came and the
// first frame.
func (b *bobbin) readFirst(t *testing.T, path string, body object, headers map[string]string) (time.Duration, []byte) {
	t.Helper()
	raw, err := json.Marshal(body)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.addr+path, bytes.NewReader(raw))
	must(t, err)
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "text/event-stream", "Authorization": "Bearer " + aliceKey} {
		r.Header.Set(name, value)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	start := time.Now()
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close()
	var first time.Duration
	var frame []byte
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && frame == nil {
			frame = []byte(data)
		}
		if first == 0 && strings.Contains(lines.Text(), "answer to") {
			first = time.Since(start)
		}
	}
	_, _ = io.Copy(io.Discard, response.Body)
	if first == 0 {
		t.Fatalf("%s: got %d and no answer", path, response.StatusCode)
	}
	return first, frame
}
