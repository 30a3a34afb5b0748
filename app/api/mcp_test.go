package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// rpcMessage is what clients read of a JSON-RPC answer.
type rpcMessage struct {
	JSONRPC string
	ID      any
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}

// mcpHeaders are those of a client of the revision.
func mcpHeaders(revision string, more ...string) []string {
	return append([]string{"Accept: application/json, text/event-stream", "Mcp-Protocol-Version: " + revision}, more...)
}

// stateless returns a message of revision 2026-07-28, which carries what older ones said once.
func stateless(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// readMessage reads the message of an answer, which may be an event.
func readMessage(t *testing.T, w *httptest.ResponseRecorder) (m rpcMessage) {
	t.Helper()
	text := w.Body.String()
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		_, text, _ = strings.Cut(text, "data: ")
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("got %d %s %q: %v", w.Code, w.Header().Get("Content-Type"), w.Body, err)
	}
	return m
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// Errors before a message is read have the status of HTTP and a body of JSON-RPC.
func TestMCPRefusesRequests(t *testing.T) {
	t.Parallel()
	open, _ := options(apitest.New(t))
	local := api.New(open)
	open.Auth = auth.New(auth.Options{Required: true, Keys: []auth.Key{auth.NewKey("shop", "secret", core.ReadWrite)}})
	keyed := api.New(open)
	open.Limits.PerSecond = 1
	limited := api.New(open)
	deep := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions","arguments":` + strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5003)
	many := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions","arguments":{"a":[` + strings.Repeat("1,", 20_000) + `1]}}}`
	for name, tt := range map[string]struct {
		server  *api.Server
		body    string
		headers []string
		status  int
		code    string // in data; empty = the body is the SDK's
	}{
		"no key":         {keyed, listTools, nil, 401, "unauthorized"},
		"wrong key":      {keyed, listTools, []string{"Authorization: Bearer wrong"}, 401, "unauthorized"},
		"foreign host":   {local, listTools, []string{"Host: evil.example"}, 403, "forbidden"},
		"foreign origin": {local, listTools, []string{"Origin: https://evil.example"}, 403, "forbidden"},
		"deep":           {local, deep, nil, 400, "invalid"},
		"many values":    {local, many, nil, 400, "invalid"},
		"large":          {local, `{"a":"` + strings.Repeat("x", 9<<20) + `"}`, nil, 413, "too_large"},
		"not UTF-8":      {local, "{\"jsonrpc\":\"2.0\",\"a\":\"\xff\"}", nil, 400, "malformed_body"},
		"batch":          {local, "[" + listTools + "]", nil, 400, "malformed_body"},
		"empty":          {local, " ", nil, 400, "malformed_body"},
		"text":           {local, listTools, []string{"Content-Type: text/plain"}, 415, "unsupported_media_type"},
		"not JSON":       {local, "{jsonrpc", nil, 400, ""},
		"no method":      {local, `{"jsonrpc":"2.0","id":1,"method":"tools/destroy"}`, nil, 400, ""},
		"old revision":   {local, listTools, []string{"Mcp-Protocol-Version: 1999-01-01"}, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request("POST", "/mcp", tt.body, mcpHeaders("2025-11-25", tt.headers...)...)
			if name == "foreign host" {
				r.Host = "evil.example"
			}
			w := do(tt.server, r)
			must.True(t, w.Code == tt.status, "got %d %.200s, want %d", w.Code, w.Body, tt.status)
			compare.True(t, tt.status != http.StatusUnauthorized || strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer"), "got no challenge")
			if tt.code == "" {
				return
			}
			if m := readMessage(t, w); m.JSONRPC != "2.0" || m.ID != nil || m.Error == nil || m.Error.Code != -32600 || m.Error.Data["code"] != tt.code || m.Error.Data["request_id"] == "" {
				t.Errorf("got %s, want an error with the code %s", w.Body, tt.code)
			}
		})
	}
	for range 500 { // a stalled machine may earn a request a second between them
		if w := do(limited, request("POST", "/mcp", listTools, mcpHeaders("2025-11-25", "Authorization: Bearer secret")...)); w.Code == http.StatusTooManyRequests {
			m := readMessage(t, w)
			compare.True(t, m.Error.Data["code"] == "rate_limited" && w.Header().Get("Retry-After") != "", "got %s, want when to retry", w.Body)
			return
		}
	}
	t.Error("the rate of a key was never limited")
}

// Other methods of HTTP are refused as the protocol says: there is no stream to listen to.
func TestMCPMethods(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for _, method := range []string{"GET", "DELETE", "HEAD", "PUT"} {
		w := do(server, request(method, "/mcp", "", mcpHeaders("2025-11-25")...))
		compare.Equal(t, method+": Allow: want 405 and POST", []any{http.StatusMethodNotAllowed, "POST"}, []any{w.Code, w.Header().Get("Allow")})
	}
	w := do(server, request("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, mcpHeaders("2025-11-25")...))
	compare.Equal(t, "for a notification: want 202 and nothing", []int{http.StatusAccepted, 0}, []int{w.Code, w.Body.Len()})
}

// A request of revision 2026-07-28 needs no earlier one; its headers and errors are those of the
// specification, and lists say how long they may be used.
func TestMCPStateless(t *testing.T) {
	t.Parallel()
	server := api.New(apitest.New(t).Options)
	for name, tt := range map[string]struct {
		body    string
		headers []string
		status  int
		code    int    // of the error; 0 = none
		want    string // in the result, or in the message of the error
	}{
		"discover":        {stateless("server/discover", ""), []string{"Mcp-Method: server/discover"}, 200, 0, `"supportedVersions":["2026-07-28","2025-11-25"`},
		"list":            {stateless("tools/list", ""), []string{"Mcp-Method: tools/list"}, 200, 0, `"ttlMs":300000,"cacheScope":"private"`},
		"templates":       {stateless("resources/templates/list", ""), []string{"Mcp-Method: resources/templates/list"}, 200, 0, `"ttlMs":300000,"cacheScope":"private"`},
		"resources":       {stateless("resources/list", ""), []string{"Mcp-Method: resources/list"}, 200, 0, `"ttlMs":0,"cacheScope":"private"`},
		"read":            {stateless("resources/read", `"uri":"bobbin://sessions/`+apitest.SessionID+`/context"`), []string{"Mcp-Method: resources/read", "Mcp-Name: bobbin://sessions/" + apitest.SessionID + "/context"}, 200, 0, `"ttlMs":0,"cacheScope":"private"`},
		"call":            {stateless("tools/call", `"name":"get_session","arguments":{"session_id":"`+apitest.SessionID+`"}`), []string{"Mcp-Method: tools/call", "Mcp-Name: get_session"}, 200, 0, `"Greetings"`},
		"wrong name":      {stateless("tools/call", `"name":"get_session"`), []string{"Mcp-Method: tools/call", "Mcp-Name: list_sessions"}, 400, -32020, "Mcp-Name"},
		"no headers":      {stateless("tools/list", ""), nil, 400, -32020, "Mcp-Method"},
		"unknown tool":    {stateless("tools/call", `"name":"nothing"`), []string{"Mcp-Method: tools/call", "Mcp-Name: nothing"}, 400, -32602, "unknown tool"},
		"unknown method":  {stateless("tools/destroy", ""), []string{"Mcp-Method: tools/destroy"}, 404, -32601, "tools/destroy"},
		"removed method":  {stateless("ping", ""), []string{"Mcp-Method: ping"}, 404, -32601, "ping"},
		"unknown session": {stateless("resources/read", `"uri":"bobbin://sessions/x/context"`), []string{"Mcp-Method: resources/read", "Mcp-Name: bobbin://sessions/x/context"}, 400, -32602, "not found"},
		"other revision":  {strings.Replace(stateless("tools/list", ""), "2026-07-28", "2099-01-01", 1), []string{"Mcp-Method: tools/list", "Mcp-Protocol-Version: 2099-01-01"}, 400, -32022, "unsupported protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := do(server, request("POST", "/mcp", tt.body, mcpHeaders("2026-07-28", tt.headers...)...))
			m := readMessage(t, w)
			compare.Equal(t, "session and no session", []any{tt.status, ""}, []any{w.Code, w.Header().Get("Mcp-Session-Id")})
			if tt.code == 0 && (m.Error != nil || !strings.Contains(string(m.Result), tt.want)) {
				t.Errorf("got %s, want %s in the result", w.Body, tt.want)
			}
			if tt.code != 0 && (m.Error == nil || m.Error.Code != tt.code || !strings.Contains(m.Error.Message, tt.want)) {
				t.Errorf("got %s, want the error %d %q", w.Body, tt.code, tt.want)
			}
		})
	}
}

// A failure inside the server is logged and says nothing internal, whether a tool, a resource or
// a list met it, and also if it is a panic.
func TestMCPHidesFailures(t *testing.T) {
	t.Parallel()
	b := apitest.New(t)
	opts, lines := options(b)
	server := api.New(opts)
	failure := errors.New("dial tcp 10.0.0.7:5432: password=hunter2")
	b.Hooks["Sessions.List"] = func(context.Context) error { return failure }
	b.Hooks["Sessions.Get"] = func(context.Context) error { panic(failure) }
	uri := "bobbin://sessions/" + apitest.SessionID + "/summary"
	for name, body := range map[string]string{
		"tool":      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_sessions"}}`,
		"panic":     `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_session","arguments":{"session_id":"` + apitest.SessionID + `"}}}`,
		"resources": `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`,
		"resource":  `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + uri + `"}}`,
	} {
		w := do(server, request("POST", "/mcp", body, mcpHeaders("2025-11-25")...))
		text := w.Body.String()
		compare.True(t, !strings.Contains(text, "hunter2") && !strings.Contains(text, "goroutine") && strings.Contains(text, "internal error (internal)"), "%s: got %s, want an internal error and no more", name, text)
	}
	compare.Equal(t, "lines about the failures", 4, len(lines.lines(t, "request failed")))
}

// While a call waits for a run, something is sent: proxies close idle connections. A client that
// goes away ends the call and not the run, with either revision.
func TestMCPWaits(t *testing.T) {
	t.Parallel()
	question, open := apitest.Gate(t)
	opts, _ := options(apitest.New(t))
	opts.Limits.Stream.Heartbeat = time.Millisecond
	handler := api.New(opts)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	run := strings.TrimPrefix(do(handler, request("POST", sessionPath()+"/messages", `{"content":"`+question+`"}`, "Prefer: respond-async")).Header().Get("Location"), "/api/v1/runs/")
	call := `"name":"wait_for_run","arguments":{"run_id":"` + run + `","wait_seconds":300}`
	for revision, body := range map[string]string{
		"2025-11-25": `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + call + `}}`,
		"2026-07-28": stateless("tools/call", call),
	} {
		ctx, leave := context.WithCancel(t.Context())
		r := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/mcp", strings.NewReader(body)))(t)
		for _, h := range mcpHeaders(revision, "Content-Type: application/json", "Mcp-Method: tools/call", "Mcp-Name: wait_for_run") {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Set(name, value)
		}
		answer := must.Get(http.DefaultClient.Do(r))(t)
		line := must.Get(bufio.NewReader(answer.Body).ReadString('\n'))(t)
		compare.Equal(t, revision+": a comment in an event stream", []any{": keep-alive\n", "text/event-stream"}, []any{line, answer.Header.Get("Content-Type")})
		leave()
		_ = answer.Body.Close()
	}
	open()
	do(handler, request("POST", sessionPath()+"/messages", `{"content":"x"}`)) // it waits for the run
	compare.Contains(t, "the run after its readers left", `"status":"succeeded"`, do(handler, request("GET", "/api/v1/runs/"+run, "")).Body.String())
}
