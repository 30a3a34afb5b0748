package graph_test

import (
	"context"
	"strings"
	"testing"

	"bobbin/app/agents/graph"
	"bobbin/tests/compare"
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
		{"empty", func(*graph.Graph[trace]) {}, []string{`no edge leads out of "__start__"`}},
		{"no function", func(g *graph.Graph[trace]) {
			g.Node("a", nil).Edge(graph.START, "a").Edge("a", graph.END)
		}, []string{`an edge leads from "__start__" to "a", which is not a node`}},
		{"unknown targets", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").ConditionalEdge("a", to("b"), "b", graph.START)
		}, []string{`an edge leads from "a" to "b", which is not a node`, `an edge leads from "a" to "__start__", which is not a node`}},
		{"dead end", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a")
		}, []string{`no edge leads out of "a"`}},
		{"two edges", func(g *graph.Graph[trace]) {
			g.Node("a", visit("a")).Edge(graph.START, "a").Edge("a", graph.END).ConditionalEdge("a", to("a"), "a")
		}, []string{`"a" has two edges: one conditional edge chooses among targets`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := graph.New[trace]()
			tt.build(g)
			_, err := g.Compile()
			var got []string
			if err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			compare.Equal(t, "faults", tt.want, got)
		})
	}
}
