package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// newCountWords returns a tool as one file: what the model is told, whether a call may be repeated after a
// crash, and the call. It is registered in NewTools of app/wire/agents.go.
func newCountWords() *tools.Custom {
	return &tools.Custom{
		Definition: llm.ToolSpec{
			Name: "count_words", Description: "Counts the words of a text.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`),
		},
		Repeatable: true, // counting changes nothing
		Call: func(_ context.Context, call tools.Call) (string, error) { // the model reads an error as the result, so it says what to correct
			var arguments struct {
				Text string `json:"text"`
			}
			if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || arguments.Text == "" {
				return "", errors.New(`expected a JSON object such as {"text": "two words"}`)
			}
			return fmt.Sprint(len(strings.Fields(arguments.Text))), nil
		},
	}
}

// A tool in Go. An agent lists it by its name, and has it like the built-in ones.
func Example() {
	set := tools.NewSet(newCountWords())
	agent, specs := set.Resolve(core.Agent{Name: "writer", Tools: []string{"count_words"}})
	tool, _ := set.Find(agent, specs[0].Name)
	result, err := tool.Call(context.Background(), tools.Call{Arguments: `{"text": "three short words"}`})
	fmt.Println(specs[0].Name, result, err)
	_, err = tool.Call(context.Background(), tools.Call{Arguments: `{}`})
	fmt.Println("error:", err)

	// Output:
	// count_words 3 <nil>
	// error: expected a JSON object such as {"text": "two words"}
}
