package conformance_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// page returns docs/MCP.md.
func page(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/MCP.md"))(t)
	return string(text)
}

// block returns the text's block of code in the language that has the words.
func block(t *testing.T, text, language, words string) string {
	t.Helper()
	for part := range strings.SplitSeq(text, "```"+language+"\n") {
		code, _, _ := strings.Cut(part, "```")
		if strings.Contains(code, words) && !strings.HasPrefix(code, "#") {
			return code
		}
	}
	t.Fatalf("the page has no %s with %q", language, words)
	return ""
}

// The programs of docs/MCP.md work as they are, and its table has the tools.
func TestMCPPage(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	text, address := page(t), "http://"+b.addr+"/mcp"
	for name, tt := range map[string]struct {
		program func(t testing.TB) string
		args    []string
		code    string
	}{
		"Node":   {process.FindNodeClients, []string{"--input-type=module", "-"}, block(t, text, "js", "send_message")},
		"Python": {process.FindPythonClients, []string{"-"}, block(t, text, "python", "send_message")},
		"curl":   {func(testing.TB) string { return "sh" }, []string{"-s"}, strings.ReplaceAll(block(t, text, "sh", "curl"), "http://127.0.0.1:8080/mcp", address)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), tt.program(t), tt.args...)
			cmd.Env = append(os.Environ(), "BOBBIN_MCP="+address, "BOBBIN_KEY="+aliceKey)
			cmd.Stdin, cmd.Stderr = strings.NewReader(tt.code), t.Output()
			out, err := cmd.Output()
			if err != nil || !strings.Contains(string(out), "17 * 23") {
				t.Errorf("got %q, %v, want the answer", out, err)
			}
		})
	}
	u := &mcpUser{bobbin: b, kind: mcpKinds()[0], key: aliceKey, cl: startClient(t, mcpKinds()[0].clientKind)}
	tools := get[struct{ Tools []struct{ Name string } }](t, u, "listTools", nil)
	for _, tool := range tools.Tools {
		if !strings.Contains(text, "| `"+tool.Name+"` | `") {
			t.Errorf("docs/MCP.md has no row for %s", tool.Name)
		}
	}
	wantEqual(t, "rows of tools", strings.Count(text, "| `read` |")+strings.Count(text, "| `write` |"), len(tools.Tools))
}
