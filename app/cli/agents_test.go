package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bobbin/app/agents"
	"bobbin/tests/compare"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
)

// agentsOf writes agents' files into the folder of the flags and returns that.
func agentsOf(t *testing.T, flags []string, files map[string]string) string {
	t.Helper()
	dir := flags[5]
	for name, text := range files {
		must.Do(t, errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)))
	}
	return dir
}

// Every key of an agent's file is shown, with its value and where that comes from.
func TestAgentsShow(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--tools-fetch-url-enabled", "true", "--context-usage-threshold", "0.7")
	dir := agentsOf(t, flags, map[string]string{"mine.yaml": "name: mine\ntools: [fetch_url, calculator]\ntemperature: 0\nsystem_prompt: " + strings.Repeat("long ", 100) +
		"\ncontext: {policy: sliding, window_messages: 20}\n"})
	out := succeed(t, flags, "", "agents show mine --json")
	shown := map[string][2]any{}
	for _, item := range fields(t, out)["items"].([]any) {
		f := item.(map[string]any)
		shown[f["key"].(string)] = [2]any{f["value"], f["from"]}
	}
	for _, k := range agents.FileKeys() {
		path := strings.Replace(k.Path, "<tool>", "fetch_url", 1)
		compare.True(t, shown[path] != [2]any{}, "%s is not shown", path)
	}
	compare.True(t, shown["tool_settings.calculator.allow_hosts"] == [2]any{}, "calculator is shown with a setting that it does not know")
	file := filepath.Join(dir, "mine.yaml")
	for path, want := range map[string][2]any{
		"temperature":                      {"0", file},
		"model":                            {"demo", "default_llm"},
		"max_iterations":                   {"10", "default"},
		"context.policy":                   {"sliding", file},
		"context.window_messages":          {"20", file},
		"context.min_recent_messages":      {"10", "preset sliding"},
		"context.usage_threshold":          {"0.7", "context_usage_threshold"},
		"compaction.threshold_iterations":  {"8", "default"},
		"tool_settings.fetch_url.approval": {"first", file},
	} {
		compare.True(t, shown[path] == want, "%s: got %q, want %q", path, shown[path], want)
	}
	if out := says(t, flags, 0, "agents show mine", "long long"); strings.Contains(out, strings.Repeat("long ", 20)) {
		t.Errorf("got %q, want the prompt cut", out)
	}
	says(t, flags, 0, "agents show assistant", "built-in agent")
	says(t, flags, 1, "agents show nobody", "there are assistant, mine")
}

// Files are checked without a server: what is wrong has file, line and column, and ends
// with 1; a model that cannot be used here does not.
func TestAgentsCheck(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	for _, word := range []string{"check", "list"} {
		says(t, flags, 0, "agents "+word, "FILE      NAME        MODEL  RESULT\n", "built in  assistant   demo   ok\n")
	}
	tools := filepath.Join(filepath.Dir(flags[5]), "tools")
	must.Do(t, os.MkdirAll(tools, 0o700))
	agentsOf(t, flags, map[string]string{"../tools/files.yaml": "name: files\nkind: mcp\ndescription: d\ncommand: sh\n"})
	for _, kinds := range []string{"", "http"} { // a folder that is not read, and a kind that is not allowed
		for _, command := range []string{"agents check", "doctor --addr 127.0.0.1:0"} {
			says(t, append(slices.Clone(flags), "--tools-allow", kinds), 0, command, "it is left out: "+filepath.Join(tools, "files.yaml")+" describes the tool files, and tools.allow does not have its kind mcp")
		}
	}
	must.Do(t, os.RemoveAll(tools))
	dir := agentsOf(t, flags, map[string]string{"good.yaml": "name: good\n", "lost.yaml": "name: lost\nmodel: nosuch\n"})
	says(t, flags, 0, "agents check", "good.yaml  good        demo    ok\n", "lost.yaml  lost        nosuch  ok, but it cannot be used: model \"nosuch\" is not known")
	agentsOf(t, flags, map[string]string{
		"tab.yaml": "name: tab\ncontext:\n\tpolicy: budget\n", "twin.yaml": "name: good\n", "large.yaml": "name: large\nsystem_prompt: " + strings.Repeat("x", 10<<20),
		"types.yaml": "name: types\ntemperature: warm\nmax_iterations: [1]\n", "lacks.yaml": "name: lacks\nmodel: gpt-5\ntemperature: 0\n",
		"loop.yaml": "name: loop\nmodel: demo\nfallback_models: [demo]\n",
	})
	says(t, flags, 1, "agents check", "good.yaml",
		"tab.yaml:3:1: a tab cannot indent; use spaces", "twin.yaml: agent good is in "+filepath.Join(dir, "good.yaml")+" too", "large.yaml: the file has more than 1048576 bytes",
		`types.yaml:2:1: temperature "warm" is not a number`, "types.yaml:3:1: max_iterations is one value", "lacks.yaml:3:1: temperature: the model gpt-5 does not take temperature",
		`loop.yaml:3:19: fallback model "demo" is the model itself`, "6 broken files")
	open := agentsOf(t, flags, map[string]string{"open.yaml": "name: open\ntools: [fetch_url]\ntool_settings: {fetch_url: {approval: never}}\n"}) + "/open.yaml"
	says(t, append(slices.Clone(flags), "--tools-fetch-url-enabled", "true"), 0, "agents check "+open, "ok, but fetch_url without allow_hosts and approval: a page")
	compare.Equal(t, "one file, checked once", 1, strings.Count(says(t, flags, 0, "agents check "+dir+"/good.yaml "+dir+"/good.yaml"), "good.yaml"))
	says(t, flags, 1, "agents check "+dir+"/none.yaml", "no such file")
}

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}

// The tools of all MCP servers are listed; one that cannot be reached is in the list, and ends with 1.
func TestMCPList(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--tools-allow", "mcp")
	says(t, flags, 0, "mcp list", "no file describes an MCP server")
	program, args := mcptest.Command("")
	tools := filepath.Join(filepath.Dir(flags[5]), "tools")
	must.Do(t, os.MkdirAll(tools, 0o700))
	agentsOf(t, flags, map[string]string{"../tools/good.yaml": fmt.Sprintf("name: good\nkind: mcp\ncommand: %s\nargs: [%s, %q]\nonly: [write]\n", program, args[0], args[1])})
	says(t, flags, 0, "mcp list", "TOOL         APPROVAL  DESCRIPTION  FROM\ngood__write  always    Does write.  "+filepath.Join(tools, "good.yaml")+"\n")
	agentsOf(t, flags, map[string]string{"../tools/bad.yaml": "name: bad\nkind: mcp\ncommand: no-such-program\n"})
	for _, command := range []string{"mcp list", "mcp list --json"} {
		says(t, flags, 1, command, "bad", "the program no-such-program is not installed", "good__write", "Does write.")
	}
}

// An agent whose other models lack their key is used without them, and each command says so.
func TestAgentsWithoutKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("GEMINI_API_KEY", "")
	flags := folder(t)
	agentsOf(t, flags, map[string]string{"mine.yaml": "name: mine\nmodel: demo\nfallback_models: [gpt-4o-mini]\ncontext: {summary_model: gemini-flash-latest}\ncompaction: {summary_model: claude-sonnet-4-5}\n"})
	skipped, notes := "a fallback is skipped: model gpt-4o-mini needs an API key: set OPENAI_API_KEY", "notes on tool loops are made without a model: model claude-sonnet-4-5 needs an API key: set ANTHROPIC_API_KEY"
	summaries := "summaries are made without a model: model gemini-flash-latest needs an API key: set GEMINI_API_KEY"
	for args, parts := range map[string][]string{
		"agents list":               {"mine        demo   ok, but " + skipped + "; " + summaries + "; " + notes},
		"agents list --json":        {`"warnings": [`, skipped, notes},
		"agents check":              {"ok, but " + skipped},
		"doctor --addr 127.0.0.1:0": {"ok    agent mine: model demo", "warn  agent mine: " + skipped, "warn  agent mine: " + summaries, "warn  agent mine: " + notes},
		"ask --agent mine hi":       {"demonstration model"},
	} {
		says(t, flags, 0, args, parts...)
	}
	t.Setenv("OPENAI_API_KEY", "sk-x")
	agentsOf(t, flags, map[string]string{"mine.yaml": "name: mine\nmodel: gpt-99\n"})
	says(t, flags, 0, "agents check", "ok, but model gpt-99 is not known here")
}

// Doctor checks a model that only an agent names, for its summaries.
func TestDoctorOfSummaryModels(t *testing.T) {
	t.Setenv("OLLAMA_HOST", "http://127.0.0.1:1")
	flags := append(folder(t), "--addr", "127.0.0.1:0")
	agentsOf(t, flags, map[string]string{"mine.yaml": "name: mine\nmodel: demo\ncontext: {summary_model: ollama/llama3.2}\n"})
	says(t, flags, 1, "doctor", "fail  model ollama/llama3.2: ollama/llama3.2: no server answers: ollama: network: http://127.0.0.1:1/v1 was not reached: ")
}

// Doctor has a line for each agent. It fails if the default agent, or none at all, can be used.
func TestDoctorOfAgents(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--addr", "127.0.0.1:0")
	agentsOf(t, flags, map[string]string{"lost.yaml": "name: lost\nmodel: nosuch\n"})
	says(t, flags, 0, "doctor", "ok    agent assistant: model demo", "warn  agent lost: messages to it are refused: model \"nosuch\" is not known", "ok    agents: 4, of which 3 can be used")
	agentsOf(t, flags, map[string]string{"assistant.yaml": "name: assistant\nmodel: nosuch\n"})
	says(t, flags, 1, "doctor", "fail  agent assistant: sessions that name no agent cannot be used")
	agentsOf(t, flags, map[string]string{"quick.yaml": "name: quick\nmodel: nosuch\n", "researcher.yaml": "name: researcher\nmodel: nosuch\n"})
	says(t, flags, 1, "doctor", "fail  agents: none of 4 can be used")
}
