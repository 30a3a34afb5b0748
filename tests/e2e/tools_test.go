package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// calling is a provider that answers a message by a call of the tool.
func calling(t *testing.T, tool, arguments string) *provider.Server {
	t.Helper()
	return apptest.NewProvider(t, provider.Options{Calls: func(r provider.Received) []provider.Call {
		if r.Messages[len(r.Messages)-1].Role != "user" {
			return nil
		}
		return []provider.Call{{ID: "call_1", Name: tool, Arguments: arguments}}
	}})
}

// Fetch_url as it is in production reads nothing of this machine or its networks.
func TestFetchURLRefusesThisMachine(t *testing.T) {
	t.Parallel()
	var hits atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(secret.Close)
	port := secret.URL[strings.LastIndexByte(secret.URL, ':')+1:]
	for _, url := range []string{secret.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://169.254.169.254/latest/meta-data/"} {
		p := calling(t, "fetch_url", fmt.Sprintf(`{"url":%q}`, url))
		h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 32_000, 2048, p), func(c *config.Config) {
			c.Tools.FetchURL.Enabled, c.Tools.FetchURL.Ports = true, []string{"80", port}
		}, apptest.WithAgent("reader", "name: reader\nsystem_prompt: You read.\ntools: [fetch_url]\ntool_settings:\n  fetch_url: {timeout: 5s, approval: never}\n"))
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "reader"})
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "read it"})
		if m := got.Messages[2]; m.Role != core.RoleTool || m.Status != core.MessageFailed || !strings.Contains(m.Content, "does not exist or is not public") {
			t.Errorf("%s: got %s %q, want it refused", url, m.Status, m.Content)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}
}

// withTool writes a file of the folder of tools and allows all kinds.
func withTool(t *testing.T, name, text string) apptest.Setting {
	return func(c *config.Config) {
		t.Helper()
		dir := filepath.Join(filepath.Dir(c.AgentsDir), "tools")
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700))
		c.Tools.Allow = []string{"mcp", "http", "openapi", "command"}
	}
}

// mcpTool describes an MCP server that behaves in a way.
func mcpTool(t *testing.T, name, mode string) apptest.Setting {
	t.Helper()
	program, args := mcptest.Command(mode)
	return withTool(t, name+".yaml", fmt.Sprintf("name: %s\nkind: mcp\ncommand: %s\nargs: [%s, %q]\n", name, program, args[0], args[1]))
}

// agentNamed returns the agent as clients see it.
func agentNamed(t *testing.T, h *apptest.Bobbin, name string) core.AgentDetail {
	t.Helper()
	list := must.Get(client.Call(t.Context(), h, ops.ListAgents, struct{}{}))(t).Items
	i := slices.IndexFunc(list, func(a core.AgentDetail) bool { return a.Name == name })
	return list[i]
}
