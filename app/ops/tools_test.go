package ops_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// withServers returns settings whose folder of tools has two MCP servers, of which one cannot start,
// and an agent with them.
func withServers(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.DataDir, cfg.DefaultLLM = t.TempDir(), "demo"
	cfg.AgentsDir = filepath.Join(cfg.DataDir, "agents")
	program, args := mcptest.Command("")
	for name, text := range map[string]string{
		"tools/good.yaml":  fmt.Sprintf("name: good\nkind: mcp\ncommand: %s\nargs: [%s, %q]\nonly: [echo, write]\napproval: first\n", program, args[0], args[1]),
		"tools/bad.yaml":   "name: bad\nkind: mcp\ncommand: no-such-program\n",
		"agents/mine.yaml": "name: mine\ntools: [good, bad]\n",
	} {
		path := filepath.Join(cfg.DataDir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return cfg
}

// An operator lists MCP servers and their tools without a Bobbin server, once they are allowed.
func TestMCPServers(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	if _, err := ops.MCPServers(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "tools of the kind mcp are switched off") {
		t.Errorf("not allowed: got %v", err)
	}
	cfg.Tools.Allow = []string{"mcp"}
	for name := range map[string]bool{"one": true, "two": true} {
		program, args := mcptest.Command("")
		text := fmt.Sprintf("name: %s\ntools: [{name: own, kind: mcp, command: %s, args: [%s, %q], env: [NAME=%s]}]\n", name, program, args[0], args[1], name)
		must.Do(t, os.WriteFile(filepath.Join(cfg.AgentsDir, name+".yaml"), []byte(text), 0o600))
	}
	list, err := ops.MCPServers(t.Context(), cfg)
	must.True(t, err == nil && len(list) == 4 && list[2].Name == "own" && list[3].Name == "own" && list[2].File != list[3].File, "got %+v, %v", list, err)
	bad, good := list[0], list[1]
	compare.True(t, bad.Problem == "the program no-such-program is not installed, or cannot be executed" && good.Problem == "" && len(good.Tools) == 2, "got %+v", list)
	w := good.Tools[1]
	compare.Equal(t, "tool", []any{"good__write", core.ApprovalFirst, "Does write."}, []any{w.Name, w.Approval, w.Description})
}

// What an agent has of the tools of files is in its settings.
func TestAgentShowsTools(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	cfg.Tools.Allow = []string{"mcp"}
	files := must.Get(ops.OpenAgentFiles(t.Context(), cfg))(t)
	fields := must.Get(files.Settings(t.Context(), "mine"))(t)
	shown := map[string]string{}
	for _, f := range fields {
		shown[f.Key] = f.Value
	}
	compare.True(t, shown["tools"] == "good, bad" && shown["tools.good"] == "good__echo, good__write" && strings.HasPrefix(shown["tools.bad"], "not available: the program no-such-program"), "got %v", shown)
	list := must.Get(files.Check(nil))(t)
	compare.True(t, len(list) > 3 && list[0].Tool == "bad" && list[0].Usable && list[2].Agent == "mine", "got %+v", list)
}

// An operator hears of tools that models do not get: of those that files name without a connection,
// and of those that servers list from doctor with calls.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	cfg := withServers(t)
	cfg.Tools.Allow, cfg.Addr = []string{"mcp"}, "127.0.0.1:0"
	program, args := mcptest.Command("many")
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("t%d", i)
	}
	server := fmt.Sprintf("kind: mcp, command: %s, args: [%s, %q]", program, args[0], args[1])
	for name, only := range map[string]string{"listed": "", "named": ", only: [" + strings.Join(names, ", ") + "]"} {
		text := fmt.Sprintf("name: %s\ntools:\n  - {name: a, %s%s}\n  - {name: b, %s%s}\n", name, server, only, server, only)
		must.Do(t, os.WriteFile(filepath.Join(cfg.AgentsDir, name+".yaml"), []byte(text), 0o600))
	}
	files := must.Get(ops.OpenAgentFiles(t.Context(), cfg))(t)
	list := must.Get(files.Check(nil))(t)
	for _, f := range list {
		compare.Equal(t, "check: "+f.File, f.Agent == "named", strings.Contains(strings.Join(f.Warnings, "; "), "it has at least 200 tools, and models get 128"))
	}
	warned := map[string]string{}
	for _, f := range ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Call: true, Logger: slog.New(slog.DiscardHandler)}).Findings {
		if strings.Contains(f.Detail, "and models get 128") {
			warned[f.Check] += f.Detail
		}
	}
	if len(warned) != 4 || warned["tool a"] != tools.TooMany(304) || !strings.HasPrefix(warned["agent listed"], "it has ") || strings.Count(warned["agent named"], "it has") != 1 {
		t.Errorf("doctor: got %q, want one warning for each agent, and for each server", warned)
	}
}
