package graph_test

import (
	"context"
	"fmt"
	"strings"

	"bobbin/app/agents/graph"
)

// draft is the state of the example: a text that is written until it is short.
type draft struct {
	text   string
	rounds int
}

// A graph of one's own: nodes, edges, a conditional edge, and a loop.
func Example() {
	write := func(_ context.Context, d draft) (draft, error) {
		d.rounds++
		d.text = strings.Repeat("long ", 3-d.rounds) + "text"
		return d, nil
	}
	publish := func(_ context.Context, d draft) (draft, error) {
		fmt.Println("published:", d.text)
		return d, nil
	}
	isShort := func(_ context.Context, d draft) string {
		if strings.Contains(d.text, "long") {
			return "write"
		}
		return "publish"
	}
	compiled, err := graph.New[draft]().
		Node("write", write).Node("publish", publish).
		Edge(graph.START, "write").
		ConditionalEdge("write", isShort, "write", "publish").
		Edge("publish", graph.END).Compile()
	if err != nil {
		fmt.Println(err)
		return
	}

	state, err := compiled.Run(context.Background(), draft{}, 10, nil)
	fmt.Println(state.rounds, err)
	fmt.Print(compiled.Mermaid())

	// Output:
	// published: text
	// 3 <nil>
	// flowchart TD
	//     __start__(["START"])
	//     write
	//     publish
	//     __end__(["END"])
	//     __start__ --> write
	//     write -.-> write
	//     write -.-> publish
	//     publish --> __end__
}
