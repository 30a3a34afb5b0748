package agents_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// withTools is known with more tools, and one that is off.
func withTools(on ...string) agents.KnownParts {
	k := known()
	k.Tools = append(k.Tools, on...)
	k.Off = map[string]string{"shell": "set tools.shell.enabled: true in bobbin.yaml"}
	return k
}

// Settings of tools are per agent, and part of the agent's version.
func TestToolSettings(t *testing.T) {
	t.Parallel()
	const file = `name: a
tools: [calculator, fetch_url, current_time]
tool_settings:
  fetch_url: {allow_hosts: [example.com, "*.example.org"], max_bytes: 65536, timeout: 5s, max_output_bytes: 4096}
  calculator: {timeout: 250ms, approval: first}
  current_time:
`
	agent := must.Get(agents.ParseFile("a.yaml", file, withTools("fetch_url")))(t)
	want := core.ToolSettings{
		"fetch_url": {
			Timeout: core.Duration(5 * time.Second), MaxOutputBytes: 4096,
			AllowHosts: []string{"example.com", "*.example.org"}, MaxBytes: 65536,
		},
		"calculator": {Timeout: core.Duration(250 * time.Millisecond), Approval: core.ApprovalFirst},
	}
	if diff := cmp.Diff(want, agent.ToolSettings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	other, err := agents.ParseFile("a.yaml", strings.ReplaceAll(file, "5s", "6s"), withTools("fetch_url"))
	if err != nil || other.Version == agent.Version {
		t.Errorf("got version %s for other settings too, error %v", other.Version, err)
	}
}

// fetch_url that may ask all hosts needs an approval, unless the file says otherwise.
func TestFetchURLNeedsAnApproval(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]struct {
		mode     core.ApprovalMode
		anywhere bool
	}{
		"":                                {core.ApprovalFirst, false},
		"{timeout: 5s}":                   {core.ApprovalFirst, false},
		"{approval: always}":              {core.ApprovalAlways, false},
		"{approval: never}":               {core.ApprovalNever, true},
		"{allow_hosts: [a.example]}":      {"", false},
		"{allow_hosts: [], timeout: 10s}": {core.ApprovalFirst, false},
		"{allow_hosts: [a.example], approval: never}": {core.ApprovalNever, false},
	} {
		file := "name: a\ntools: [calculator, fetch_url]\ntool_settings:\n  calculator: {timeout: 2s}\n"
		if settings != "" {
			file += "  fetch_url: " + settings + "\n"
		}
		agent := must.Get(agents.ParseFile("a.yaml", file, withTools("fetch_url")))(t)
		if got := agent.ToolSettings["fetch_url"].Approval; got != want.mode || agent.SendsAnywhere() != want.anywhere {
			t.Errorf("%s: got the approval %q, sends anywhere %v, want %+v", settings, got, agent.SendsAnywhere(), want)
		}
		if got := agent.ToolSettings["calculator"]; got.Approval != "" || got.Timeout != core.Duration(2*time.Second) {
			t.Errorf("%s: got %+v for another tool, want it as it is written", settings, got)
		}
	}
	without, err := agents.ParseFile("a.yaml", "name: a\ntools: [calculator]\n", withTools("fetch_url"))
	if err != nil || without.ToolSettings != nil {
		t.Errorf("without the tool: got %+v, error %v, want no settings", without.ToolSettings, err)
	}
}

// Every fault of the settings tells file, line and column, and what is allowed.
func TestToolSettingFaults(t *testing.T) {
	t.Parallel()
	const begin = "name: a\ntools: [calculator, fetch_url]\ntool_settings:\n"
	for name, c := range map[string]struct{ file, want string }{
		"a tool that is off": {"name: a\ntools: [shell]\n", `2:9: tool "shell" is switched off; set tools.shell.enabled: true in bobbin.yaml`},
		"unknown tool":       {begin + "  fetch_urls: {}\n", `4:3: tool_settings.fetch_urls: tool "fetch_urls" does not exist; did you mean fetch_url?`},
		"not the agent's":    {begin + "  current_time: {timeout: 1s}\n", "4:3: tool_settings.current_time: the agent does not have the tool; add it to tools"},
		"off and not listed": {begin + "  shell: {}\n", "4:3: tool_settings.shell: the agent does not have the tool; add it to tools"},
		"unknown field":      {begin + "  fetch_url: {allow_host: [x]}\n", "4:15: tool_settings.fetch_url.allow_host is not a known field; did you mean allow_hosts?"},
		"another tool's field": {begin + "  calculator:\n    timeout: 1s\n    allow_hosts: [x]\n",
			"6:5: tool_settings.calculator.allow_hosts: calculator has no such setting; there are approval, max_output_bytes, timeout"},
		"types": {begin + "  fetch_url: {timeout: 5, max_bytes: 999999999, allow_hosts: ['https://x', '*', a.b]}\n  calculator: {approval: sometimes}\n",
			`4:15: tool_settings.fetch_url.timeout "5" is not a time with a unit, such as 30s, from 100ms to 10m
4:27: tool_settings.fetch_url.max_bytes is 999999999; use 1024 to 8388608
4:63: tool_settings.fetch_url.allow_hosts[0] "https://x" is not allowed; use example.com, or *.example.com for all below it
4:76: tool_settings.fetch_url.allow_hosts[1] "*" is not allowed; use example.com, or *.example.com for all below it
5:16: tool_settings.calculator.approval must be always (a person must agree to every call), first (until one was approved in the session) or never`},
		"twice":      {begin + "  calculator: {}\n  calculator: {}\n", "5:3: tool_settings.calculator is there already, in line 4"},
		"of no tool": {"name: a\ntool_settings: {x: {}}\n", `2:17: tool_settings.x: tool "x" does not exist; there are none`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agents.ParseFile("a.yaml", c.file, withTools("fetch_url"))
			if err == nil {
				t.Fatal("got no error")
			}
			want := "a.yaml:" + strings.ReplaceAll(c.want, "\n", "\na.yaml:")
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
