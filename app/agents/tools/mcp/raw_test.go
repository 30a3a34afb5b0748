package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
)

// rawServer serves the protocol by hand: answer returns the result of a method, in JSON, or writes to w
// itself and returns "".
func rawServer(t *testing.T, answer func(w http.ResponseWriter, method string) string) core.ToolDefinition {
	t.Helper()
	return overHTTP(t, nil, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			var request struct {
				ID     json.RawMessage `json:"id"`
				Method string          `json:"method"`
			}
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			result := `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
			member := "result"
			switch request.Method {
			case "initialize":
			case "server/discover":
				member, result = "error", `{"code":-32601,"message":"no"}`
			default:
				result = answer(w, request.Method)
			}
			if result != "" {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%q:%s}`, request.ID, member, result)
			}
		})
	})
}

// oneTool is a list of the tool x.
const oneTool = `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`

// A list without an end is read to a bound.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	var pages atomic.Int64
	s, _ := start(t, rawServer(t, func(http.ResponseWriter, string) string {
		n := pages.Add(1)
		return fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}],"nextCursor":"%d"}`, n, n)
	}))
	if got := s.Listing(); len(got.Tools) != 64 || pages.Load() != 64 {
		t.Errorf("got %d tools of %d pages, want 64", len(got.Tools), pages.Load())
	}
}

// What is no list and no result is an error in bounds.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, call, want string }{
		"no list":         {`{"tools":5}`, "", "its tools cannot be listed"},
		"no tools":        {`{}`, "", "no tool test__x"},
		"no schema":       {`{"tools":[{"name":"x","inputSchema":"any"}]}`, "", "no tool test__x"},
		"null":            {`{"tools":[null,{"name":""}]}`, "", "no tool test__x"},
		"no result":       {oneTool, `null`, ""},
		"no content":      {oneTool, `{}`, ""},
		"unknown content": {oneTool, `{"content":[{"type":"hologram","text":"x"}]}`, "error: the connection to the server test was lost"},
		"an error":        {oneTool, `{"isError":true,"content":[]}`, "error: the tool failed and does not say why"},
		"a long error":    {oneTool, `{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("e", 100_000) + `"}]}`, "error: eeee"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, rawServer(t, func(_ http.ResponseWriter, method string) string {
				if method == "tools/list" {
					return c.list
				}
				return c.call
			}))
			got := call(t, s, "test__x", "{}")
			if c.call == "" {
				got += " " + s.Listing().Problem
			}
			if !strings.Contains(got, c.want) || len(got) > 5000 {
				t.Errorf("got %.300q, want %q", got, c.want)
			}
		})
	}
}

// A stream that floods before its answer is read to the answer.
func TestFloodingStream(t *testing.T) {
	t.Parallel()
	s, _ := start(t, rawServer(t, func(w http.ResponseWriter, method string) string {
		if method == "tools/list" {
			return oneTool
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 5_000 {
			if _, err := fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n"); err != nil {
				break
			}
		}
		return ""
	}))
	if got := call(t, s, "test__x", "{}"); !strings.Contains(got, "lost during the call") && !strings.Contains(got, "refused the call") {
		t.Errorf("got %s", got)
	}
}
