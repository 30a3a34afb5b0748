package conformance_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
)

func errorOf(f *fault) error { return errors.New(f.String()) }

// mcpResults are the operations that passed. Safe for concurrent use.
type mcpResults struct {
	mu     sync.Mutex
	passed map[string]bool // by client and operation: on all databases; guarded by mu
	facts  [][]string      // of requests by hand
}

func (r *mcpResults) note(kind mcpKind, operation string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := kind.name + kind.revision + operation
	before, known := r.passed[key]
	r.passed[key] = ok && (before || !known)
}

// log prints the tables.
func (r *mcpResults) log(t *testing.T) {
	t.Helper()
	names, revisions := []string{"operation"}, []string{""}
	for _, kind := range mcpKinds() {
		names, revisions = append(names, kind.name), append(revisions, kind.revision)
	}
	rows := [][]string{names, revisions}
	for _, o := range mcpOperations() {
		row := []string{o.name}
		for _, kind := range mcpKinds() {
			row = append(row, map[bool]string{true: "ok", false: "FAILED"}[r.passed[kind.name+kind.revision+o.name]])
		}
		rows = append(rows, row)
	}
	t.Logf("\n%s\n%s", alignTable(rows), alignTable(r.facts))
}

func alignTable(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// handmade is a request that no client makes, or whose details clients hide.
type handmade struct {
	name, method, params string
	headers              map[string]string
	want                 map[string]string // by the revision: what is observed
}

// handmades returns the requests, with what each revision of the protocol demands.
func handmades() []handmade {
	uri := "bobbin://sessions/none/context"
	return []handmade{
		{"discover", "server/discover", "", nil, map[string]string{revision2025: "200 error -32601", revision2026: "200 ttlMs 300000 private"}},
		{"ping", "ping", "", nil, map[string]string{revision2025: "200 ok", revision2026: "404 error -32601"}},
		{"list of tools", "tools/list", "", nil, map[string]string{revision2025: "200 ok", revision2026: "200 ttlMs 300000 private"}},
		{"list of resources", "resources/list", "", nil, map[string]string{revision2025: "200 ok", revision2026: "200 ttlMs 0 private"}},
		{"list of templates", "resources/templates/list", "", nil, map[string]string{revision2025: "200 ok", revision2026: "200 ttlMs 300000 private"}},
		{"unknown tool", "tools/call", `"name":"none"`, map[string]string{"Mcp-Name": "none"}, map[string]string{revision2025: "200 error -32602", revision2026: "400 error -32602"}},
		{"unknown resource", "resources/read", `"uri":"` + uri + `"`, map[string]string{"Mcp-Name": uri}, map[string]string{revision2025: "200 error -32602", revision2026: "400 error -32602"}},
		{"unknown method", "tools/destroy", "", nil, map[string]string{revision2025: "400 text", revision2026: "404 error -32601"}},
		{"header Mcp-Method says another", "tools/list", "", map[string]string{"Mcp-Method": "ping"}, map[string]string{revision2025: "200 ok", revision2026: "400 error -32020"}},
		{"header Mcp-Name says another", "tools/call", `"name":"list_sessions"`, map[string]string{"Mcp-Name": "get_session"}, map[string]string{revision2025: "200 ok", revision2026: "400 error -32020"}},
		{"wrong key", "tools/list", "", map[string]string{"Authorization": "Bearer wrong"}, map[string]string{revision2025: "401 error -32600", revision2026: "401 error -32600"}},
	}
}

// readFacts sends the requests by hand and returns the table of what was observed.
func (b *bobbin) readFacts(t *testing.T) [][]string {
	t.Helper()
	rows := [][]string{{"by hand", revision2025, revision2026}}
	for _, h := range handmades() {
		row := []string{h.name}
		for _, revision := range []string{revision2025, revision2026} {
			got := b.observe(t, h, revision)
			if got != h.want[revision] {
				t.Errorf("%s, %s: got %s, want %s", h.name, revision, got, h.want[revision])
			}
			row = append(row, got)
		}
		rows = append(rows, row)
	}
	return rows
}

// observe sends a request by hand and returns what is to be seen of the answer.
func (b *bobbin) observe(t *testing.T, h handmade, revision string) string {
	t.Helper()
	params := h.params
	if revision == revision2026 {
		if params != "" {
			params += ","
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision + `","io.modelcontextprotocol/clientInfo":{"name":"hand","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + h.method + `","params":{` + params + `}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+b.addr+"/mcp", strings.NewReader(body))
	must(t, err)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": revision, "Mcp-Method": h.method, "Authorization": "Bearer " + aliceKey,
	} {
		r.Header.Set(name, value)
	}
	for name, value := range h.headers {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	must(t, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	must(t, err)
	if _, data, ok := bytes.Cut(raw, []byte("data: ")); ok {
		raw = data
	}
	var m struct {
		Result *struct {
			TTLMs      *int `json:"ttlMs"`
			CacheScope string
		}
		Error *struct{ Code int }
	}
	switch err := json.Unmarshal(raw, &m); {
	case err != nil:
		return fmt.Sprintf("%d text", answer.StatusCode)
	case m.Error != nil:
		return fmt.Sprintf("%d error %d", answer.StatusCode, m.Error.Code)
	case m.Result.TTLMs != nil && revision == revision2026:
		return fmt.Sprintf("%d ttlMs %d %s", answer.StatusCode, *m.Result.TTLMs, m.Result.CacheScope)
	default:
		return fmt.Sprintf("%d ok", answer.StatusCode)
	}
}
