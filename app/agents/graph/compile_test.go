package graph_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/graph"
)

// trace is a state that remembers which nodes it passed.
type trace []string

// visit returns a node that adds its name to the state.
func visit(name string) graph.NodeFunc[trace] {
	return func(_ context.Context, s trace) (trace, error) {
		return append(s[:len(s):len(s)], name), nil
	}
}

// to returns a router that always answers the target.
func to(target string) graph.Router[trace] {
	return func(context.Context, trace) string { return target }
}

func TestCompileFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		build func(g *graph.Graph[trace])
		want  []string
	}{
		{"fine", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END)
		}, nil},
		{"empty", func(*graph.Graph[trace]) {}, []string{
			`there are no nodes`,
			`no edge leads out of START: say where to begin`}},
		{"missing start", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge("a", graph.END)
		}, []string{`no edge leads out of START: say where to begin`}},
		{"reserved names", func(g *graph.Graph[trace]) {
			g.Node(graph.START, visit("")).Node(graph.END, visit("")).Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END)
		}, []string{
			`node "__start__": a name consists of letters, digits and "_", begins with a letter, and does not end with "__"`,
			`node "__end__": a name consists of letters, digits and "_", begins with a letter, and does not end with "__"`}},
		{"bad names", func(g *graph.Graph[trace]) {
			g.Node("a b", visit("a")).Node("", visit("a")).Node("1a", visit("a")).
				Edge(graph.START, "a b").Edge("a b", "").Edge("", "1a").Edge("1a", graph.END)
		}, []string{
			`node "a b": a name consists of letters, digits and "_", begins with a letter, and does not end with "__"`,
			`node "": a name consists of letters, digits and "_", begins with a letter, and does not end with "__"`,
			`node "1a": a name consists of letters, digits and "_", begins with a letter, and does not end with "__"`}},
		{"duplicate node", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END)
		}, []string{`node "a" is declared twice`}},
		{"no function", func(g *graph.Graph[trace]) {
			g.Node("a", nil).Edge(graph.START, "a").Edge("a", graph.END)
		}, []string{`node "a" has no function`}},
		{"unknown target", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", "b")
		}, []string{`an edge leads from "a" to "b", which is not a node`}},
		{"unknown source", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END).Edge("b", "a")
		}, []string{`an edge leads out of "b", which is not a node`}},
		{"out of END, to START", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").ConditionalEdge("a", to(graph.END), graph.END, graph.START).Edge(graph.END, "a")
		}, []string{
			`an edge leads from "a" to START, which is not a node`,
			`an edge leads out of END, which is not a node`}},
		{"unreachable", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Node("b", visit("b")).Edge(graph.START, "a").Edge("a", graph.END).Edge("b", "a")
		}, []string{`node "b" is unreachable: no path from START leads to it`}},
		{"dead end", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a")
		}, []string{`node "a" has no way to END: no edge leads out of it`}},
		{"circle", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Node("b", visit("b")).Node("c", visit("c")).
				ConditionalEdge(graph.START, to("a"), "a", "c").Edge("a", "b").Edge("b", "a").Edge("c", graph.END)
		}, []string{
			`node "a" has no way to END: every path from it goes in circles`,
			`node "b" has no way to END: every path from it goes in circles`}},
		{"two edges", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge(graph.START, graph.END).Edge("a", graph.END).ConditionalEdge("a", to("a"), "a")
		}, []string{
			`START has 2 edges: one conditional edge chooses among targets`,
			`"a" has 2 edges: one conditional edge chooses among targets`}},
		{"no targets, no router", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").ConditionalEdge("a", nil)
		}, []string{
			`the conditional edge from "a" has no router or no targets`,
			`node "a" has no way to END: every path from it goes in circles`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := graph.New[trace]("g")
			tt.build(g)
			_, err := g.Compile()
			if diff := cmp.Diff(tt.want, sentences(err)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// sentences returns the joined faults without their common beginning.
func sentences(err error) []string {
	if err == nil {
		return nil
	}
	var faults []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		faults = append(faults, strings.TrimPrefix(line, `graph "g": `))
	}
	return faults
}

// TestCompiledNeverChanges declares more after Compile, and changes the targets
// that were handed over.
func TestCompiledNeverChanges(t *testing.T) {
	t.Parallel()
	targets := []string{"b", graph.END}
	g := graph.New[trace]("g").Node("a", visit("a")).Node("b", visit("b")).
		Edge(graph.START, "a").ConditionalEdge("a", to("b"), targets...).Edge("b", graph.END)
	compiled, err := g.Compile()
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	before := compiled.Mermaid()
	targets[0] = "c"
	g.Node("c", visit("c")).Edge("b", "c")
	compiled.Describe().Edges[0].Target = "c"
	if after := compiled.Mermaid(); after != before {
		t.Errorf("got another graph after Compile:\n%s\nwant\n%s", after, before)
	}
	got, err := compiled.Run(t.Context(), nil, 10, nil)
	if diff := cmp.Diff(trace{"a", "b"}, got); diff != "" || err != nil {
		t.Errorf("run: error %v, state (-want +got):\n%s", err, diff)
	}
	if _, err := g.Compile(); err == nil {
		t.Error("got no fault for what was declared later, want some")
	}
}

func TestDescribeAndMermaid(t *testing.T) {
	t.Parallel()
	c, err := graph.New[trace]("assistant").
		Node("llm_node", visit("llm_node")).Node("tool_node", visit("tool_node")).Node("end", visit("end")).
		Edge(graph.START, "llm_node").ConditionalEdge("llm_node", to("end"), "tool_node", "end").
		Edge("tool_node", "llm_node").Edge("end", graph.END).Compile()
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	wantMermaid := `flowchart TD
    __start__(["START"])
    llm_node
    tool_node
    end__["end"]
    __end__(["END"])
    __start__ --> llm_node
    llm_node -.-> tool_node
    llm_node -.-> end__
    tool_node --> llm_node
    end__ --> __end__
`
	if diff := cmp.Diff(wantMermaid, c.Mermaid()); diff != "" {
		t.Errorf("Mermaid (-want +got):\n%s", diff)
	}
	got, err := json.Marshal(c.Describe())
	if err != nil {
		t.Fatalf("marshal: %v", err)
	}
	wantJSON := `{"nodes":[{"id":"__start__"},{"id":"llm_node"},{"id":"tool_node"},{"id":"end"},{"id":"__end__"}],` +
		`"edges":[{"source":"__start__","target":"llm_node","conditional":false},` +
		`{"source":"llm_node","target":"tool_node","conditional":true},` +
		`{"source":"llm_node","target":"end","conditional":true},` +
		`{"source":"tool_node","target":"llm_node","conditional":false},` +
		`{"source":"end","target":"__end__","conditional":false}]}`
	if diff := cmp.Diff(wantJSON, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}
