package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
)

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
	list := apptest.Must(client.Call(t.Context(), h, ops.ListAgents, struct{}{}))(t).Items
	i := slices.IndexFunc(list, func(a core.AgentDetail) bool { return a.Name == name })
	return list[i]
}
