package graph_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/graph"
)

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
