package tools_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// sendGrid is the SHA-256 of the API document of SendGrid, 334 operations, which is in the module
// kin-openapi.
const sendGrid = "ca263415ff5f58fdd22e7724a78dacab3844c99f1494f0e5f12ede7c832d2c20"

// The document of a public service becomes tools, whose calls have the service's form.
func TestOpenAPIOfAService(t *testing.T) {
	t.Parallel()
	out := must.Get(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/getkin/kin-openapi").Output())(t)
	document := must.Get(os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "openapi3/testdata/oai_v3_stoplight.json")))(t)
	if sum := sha256.Sum256(document); hex.EncodeToString(sum[:]) != sendGrid {
		t.Fatal("the module has another document; look at it and take its hash")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s key=%t %s", r.Method, r.RequestURI, r.Header.Get("Idempotency-Key") != "", body)
	}))
	t.Cleanup(server.Close)
	operations := []string{"GET_alerts", "POST_alerts", "POST_mail-send", "GET_asm-groups-group_id", "GET_templates"}
	got, fault := openAPI(t, string(document), core.ToolDefinition{Operations: operations, Server: server.URL})
	if fault != nil || len(got.Tools) != len(operations) || got.Problem != "" {
		t.Fatalf("got %d tools, %+v, %s", len(got.Tools), fault, got.Problem)
	}
	calls := map[string][2]string{
		"shop__POST_alerts":             {`{"body":{"type":"stats_notification","email_to":"ann@example.com","frequency":"daily"}}`, `POST /alerts key=true {"email_to":"ann@example.com","frequency":"daily","type":"stats_notification"}`},
		"shop__GET_asm-groups-group_id": {`{"group_id":"a/7"}`, "GET /asm/groups/a%2F7 key=false "},
		"shop__GET_templates":           {`{"generations":"dynamic","page_size":5}`, "GET /templates?generations=dynamic&page_size=5 key=false "},
	}
	for _, tool := range got.Tools {
		if size := len(tool.Definition.Parameters); size > 64<<10 || strings.Contains(string(tool.Definition.Parameters), "$ref") {
			t.Errorf("%s: a schema of %d bytes", tool.Definition.Name, size)
		}
		call, ok := calls[tool.Definition.Name]
		if !ok {
			continue
		}
		if text, err := callTool(t, tool, call[0]); err != nil || text != call[1] {
			t.Errorf("%s: got %q, %v, want %q", tool.Definition.Name, text, err, call[1])
		}
		delete(calls, tool.Definition.Name)
	}
	if len(calls) > 0 {
		t.Errorf("there are no tools for %v", calls)
	}
}
