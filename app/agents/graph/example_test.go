package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bobbin/app/agents/graph"
)

// draft is the state of the example: a text that is written, checked, and sent when a person agrees.
type draft struct {
	text     string
	rounds   int
	approved *bool // what a person said; nil = nobody was asked
}

// A graph of one's own: nodes, an edge, conditional edges, a loop, and a node that interrupts the run
// until a person has answered.
func Example() {
	write := func(_ context.Context, d draft) (draft, error) {
		if d.rounds < 3 { // else it was written before the run was interrupted
			d.rounds++
			d.text = strings.Repeat("long ", 3-d.rounds) + "text"
		}
		return d, nil
	}
	publish := func(_ context.Context, d draft) (draft, error) {
		if d.approved == nil {
			return d, graph.Interrupt("Publish “" + d.text + "”?")
		}
		return d, nil
	}
	isShort := func(_ context.Context, d draft) string {
		if strings.Contains(d.text, "long") {
			return "write"
		}
		return "publish"
	}
	compiled, err := graph.New[draft]("publisher").
		Node("write", write).Node("publish", publish).
		Edge(graph.START, "write").
		ConditionalEdge("write", isShort, "write", "publish").
		Edge("publish", graph.END).Compile()
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	state, err := compiled.Run(ctx, draft{}, 10, nil)
	if question, ok := errors.AsType[*graph.InterruptError[string]](err); ok {
		fmt.Println(question.Node, "asks:", question.Value)
		// Here a program stores the state, and asks.
		state.approved = new(true)
		state, err = compiled.Run(ctx, state, 10, nil)
	}
	fmt.Println(state.text, state.rounds, *state.approved, err)
	fmt.Print(compiled.Mermaid())

	// Output:
	// publish asks: Publish “text”?
	// text 3 true <nil>
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
