package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bobbin/app/core/llm"
)

// toolChange is a block that adds a tool by its definition, or removes one by its name.
type toolChange struct {
	Type string      `json:"type"`
	Tool changedTool `json:"tool"`
}

type changedTool struct {
	Type       string              `json:"type"`
	Name       string              `json:"name,omitempty"`
	Definition *sdk.ToolUnionParam `json:"definition,omitempty"`
}

// block returns the block as the SDK's stable API takes it, which lacks the type.
func (c toolChange) block() (sdk.ContentBlockParamUnion, error) {
	raw, err := json.Marshal(c)
	text := param.Override[sdk.TextBlockParam](json.RawMessage(raw))
	return sdk.ContentBlockParamUnion{OfText: &text}, err
}

// systemMessage returns a system message among the others: changes of the tools, and its text.
func systemMessage(turn llm.Message) ([]sdk.ContentBlockParamUnion, error) {
	var changes []toolChange
	for _, name := range turn.RemovedTools {
		changes = append(changes, toolChange{"tool_removal", changedTool{Type: "tool_reference", Name: name}})
	}
	for _, tool := range toolParams(turn.AddedTools) {
		changes = append(changes, toolChange{"tool_addition", changedTool{Type: "tool_definition", Definition: &tool}})
	}
	var out []sdk.ContentBlockParamUnion
	for _, change := range changes {
		block, err := change.block()
		if err != nil { // a schema that is not JSON
			return nil, err
		}
		out = append(out, block)
	}
	if turn.Content != "" || len(out) == 0 {
		out = append(out, textBlock(turn.Content))
	}
	return out, nil
}
