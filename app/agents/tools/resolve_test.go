package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// changing is a source whose tools a test changes.
type changing struct {
	*tools.Listed

	running chan bool // true = Run has begun, false = it has ended
}

func newChanging() *changing { return &changing{tools.NewListed(""), make(chan bool, 10)} }

func (c *changing) set(list ...*tools.Custom) { c.Set(tools.NewListing(list)) }

func (c *changing) Run(ctx context.Context) {
	c.running <- true
	<-ctx.Done()
	c.running <- false
}

// custom is a tool that answers with its name.
func custom(name string, mode core.ApprovalMode) *tools.Custom {
	return &tools.Custom{Definition: llm.ToolSpec{Name: name, Description: name}, Approval: mode, Repeatable: true,
		Call: func(context.Context, tools.Call) (string, error) { return name, nil }}
}

// withSource is a set with the built-in tools b and a, and one source for all definitions.
func withSource(t *testing.T, source tools.Source) *tools.Set {
	t.Helper()
	return tools.NewSet(named("b"), named("a")).WithSources(func(core.ToolDefinition) tools.Source { return source }, slog.New(slog.DiscardHandler))
}

func filesAgent() core.Agent {
	return core.Agent{
		Name: "x", Version: "0123456789ab", Tools: []string{"b", "files"},
		Definitions:  []core.ToolDefinition{{Name: "files", Kind: core.ToolMCP, Timeout: core.Duration(time.Second), MaxOutputBytes: 1000}},
		ToolSettings: core.ToolSettings{"b": {MaxOutputBytes: 5}, "files": {MaxOutputBytes: 2000}, "files__write": {Approval: core.ApprovalFirst}},
	}
}

// An agent has the tools that its definitions have now, with what its file says of them over what the
// definition says over what the tool is like. Its version has their hash.
func TestResolve(t *testing.T) {
	t.Parallel()
	source := newChanging()
	source.set(custom("files__write", core.ApprovalAlways), custom("files__read", core.ApprovalNever))
	set := withSource(t, source)
	agent := filesAgent()
	set.Use([]core.Agent{agent})
	got, specs := set.Resolve(agent)
	compare.Equal(t, "tools", []string{"b", "files__read", "files__write"}, got.Tools)
	want := core.ToolSettings{
		"b":            {MaxOutputBytes: 5},
		"files__read":  {Approval: core.ApprovalNever, Timeout: core.Duration(time.Second), MaxOutputBytes: 2000},
		"files__write": {Approval: core.ApprovalFirst, Timeout: core.Duration(time.Second), MaxOutputBytes: 2000},
	}
	compare.Equal(t, "settings", want, got.ToolSettings)
	compare.True(t, len(specs) == 3 && specs[0].Name == "b" && specs[2].Name == "files__write" && len(got.Version) == 12 && got.Version != agent.Version, "got %v, version %s", specs, got.Version)
	if again, _ := set.Resolve(agent); again.Version != got.Version {
		t.Errorf("the same tools, and version %s and %s", got.Version, again.Version)
	}
	source.set(custom("files__read", core.ApprovalNever))
	next, specs := set.Resolve(agent)
	compare.True(t, next.Version != got.Version && len(specs) == 2, "other tools, and the same version, or %v", specs)
	if _, ok := set.Find(got, "files__write"); ok {
		t.Error("a tool that has vanished is found")
	}
	if tool, ok := set.Find(got, "files__read"); !ok || !tool.Repeatable {
		t.Error("the tool that is left is not found")
	}
	one := agent
	one.Name, one.Tools = "y", []string{"files__read", "files__gone", "a"}
	if only, _ := set.Resolve(one); !cmp.Equal(only.Tools, []string{"files__read", "a"}) {
		t.Errorf("got %v for single tools", only.Tools)
	}
	plain := core.Agent{Name: "p", Version: "1", Tools: []string{"a"}}
	if p, specs := set.Resolve(plain); p.Version != "1" || len(specs) != 1 {
		t.Errorf("an agent without definitions has changed: %+v %v", p, specs)
	}
}

// An agent has no more tools than a model takes: its built-in ones and the first of its definitions.
func TestTooManyTools(t *testing.T) {
	t.Parallel()
	source := newChanging()
	var list []*tools.Custom
	for i := range 200 {
		list = append(list, custom(fmt.Sprintf("files__%03d", i), core.ApprovalNever))
	}
	source.set(list...)
	set := withSource(t, source)
	agent := filesAgent()
	agent.Tools = []string{"files", "a"}
	set.Use([]core.Agent{agent})
	got, specs := set.Resolve(agent)
	if len(got.Tools) != core.MaxTools || len(specs) != core.MaxTools || !slices.Contains(got.Tools, "a") || !slices.Contains(got.Tools, "files__126") {
		t.Errorf("got %d tools, %d definitions, of which the last is %v", len(got.Tools), len(specs), got.Tools[len(got.Tools)-1])
	}
}

// Agents with the same definition share a source. It runs while one of them is there.
func TestSourcesInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source, opened := newChanging(), 0
		set := tools.NewSet().WithSources(func(core.ToolDefinition) tools.Source { opened++; return source }, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- set.Run(ctx) }()
		a, b := filesAgent(), filesAgent()
		b.Name = "y"
		set.Use([]core.Agent{a, b})
		compare.True(t, <-source.running && opened == 1, "opened %d sources, want one that runs", opened)
		set.Use([]core.Agent{b})
		synctest.Wait()
		compare.True(t, len(source.running) == 0, "the source has ended although an agent uses it")
		begin := time.Now()
		if set.Await(t.Context(), a); time.Since(begin) != 10*time.Second {
			t.Errorf("waited %s for a source that was not tried, want 10s", time.Since(begin))
		}
		source.Set(tools.Listing{})
		if set.Await(t.Context(), a); time.Since(begin) != 10*time.Second {
			t.Error("waited for a source that was tried")
		}
		set.Use(nil)
		if <-source.running {
			t.Error("the source has begun again")
		}
		if _, ok := set.Find(a, "files__read"); ok {
			t.Error("a tool of a source that was closed is found")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Names have the letters and the length that providers take, and are never the same.
func TestNames(t *testing.T) {
	t.Parallel()
	names := tools.NewNamer("files", nil)
	long := strings.Repeat("a", 80)
	seen := map[string]bool{}
	for _, tool := range []string{"read", "read file", "read.file", "read_file", long, long + "b", "日本", "中国", ""} {
		got := names.Name(tool)
		compare.True(t, len(got) <= 64 && !seen[got] && strings.HasPrefix(got, "files__") && !strings.ContainsAny(got, " .日"), "%q is called %q", tool, got)
		seen[got] = true
	}
	compare.Equal(t, `tools.NewNamer("files", nil).Name("read")`, "files__read", tools.NewNamer("files", nil).Name("read"))
}

// named is a tool that has only a name.
func named(name string) *tools.Custom {
	return &tools.Custom{Definition: llm.ToolSpec{Name: name}, Repeatable: true}
}

// Secrets are hidden as they are, as JSON writers escape them, and by their lines.
func TestHideSecrets(t *testing.T) {
	t.Parallel()
	values := map[string]string{"TOKEN": "a/b<c&d>e+f==", "KEY": "-----BEGIN-----\nMIIEvQIBADAN\n-----END KEY-----", "PIN": "1234", "PASSWORD": `tök/en"sec<&>😀`}
	secrets := tools.Environment(func(name string) string { return values[name] }).Secrets(core.ToolDefinition{Bearer: "TOKEN", Env: []string{"KEY", "PIN", "PATH", "PASSWORD"}})
	quoted := must.Get(json.Marshal("token " + values["TOKEN"]))(t)
	for text, want := range map[string]string{
		"Bearer a/b<c&d>e+f==":                                   "Bearer ***",
		string(quoted):                                           `"token ***"`,
		`{"token":"a\/b<c&d>e+f=="}`:                             `{"token":"***"}`,
		`{"Python":"t\u00f6k/en\"sec<&>\ud83d\ude00"}`:           `{"Python":"***"}`,
		`{"PHP":"t\u00f6k\/en\"sec<&>\ud83d\ude00"}`:             `{"PHP":"***"}`,
		`{"upper":"t\u00F6k/en\"sec<&>\uD83D\uDE00"}`:            `{"upper":"***"}`,
		`{"JS":"tök/en\"sec<&>😀"}`:                               `{"JS":"***"}`,
		`{"Go":"tök/en\"sec\u003c\u0026\u003e😀"}`:                `{"Go":"***"}`,
		"key:\n" + values["KEY"]:                                 "key:\n***",
		"line MIIEvQIBADAN of the key":                           "line *** of the key",
		"pins are too short to be hidden: 1234, and /usr/bin is": "pins are too short to be hidden: 1234, and /usr/bin is",
	} {
		compare.Equal(t, fmt.Sprintf("%q", text), want, tools.HideSecrets(text, secrets))
	}
}
