package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Beta features of Anthropic that change tools in a conversation: the first one by reference, the
// second one by definition.
const (
	betaToolChanges = "mid-conversation-tool-changes-2026-07-01"
	betaInlineTools = "inline-tools-2026-09-15"
)

// toolChange is a block of a system message that adds or removes a tool.
type toolChange struct {
	Type string `json:"type"`
	Tool struct {
		Type       string          `json:"type"` // tool_reference or tool_definition
		Name       string          `json:"name"`
		Definition json.RawMessage `json:"definition"`
	} `json:"tool"`
}

// toolDefinition is a tool in Anthropic's form.
type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// isToolChange reports whether a block adds or removes a tool.
func isToolChange(kind string) bool { return kind == "tool_addition" || kind == "tool_removal" }

// checkToolChange refuses a change of the tools where Anthropic does.
//
// The rules are those of anthropic-sdk-go v1.84.0 (BetaRequestToolAdditionBlockParam and its likes, AddTools of
// its tool runner): a reference names a tool of `tools`, or with inline-tools one that was defined before; a
// definition takes the place of an earlier one of that name; both are offered from there on. Assumed: either
// beta allows a removal; what is removed was offered; without the betas the blocks are not known.
func (c *conversation) checkToolChange(path string, raw json.RawMessage) *refusal {
	var change toolChange
	var defined toolDefinition
	_ = json.Unmarshal(raw, &change) // what has another form is refused below
	_ = json.Unmarshal(change.Tool.Definition, &defined)
	isDefinition, name := change.Tool.Type == "tool_definition", change.Tool.Name
	if isDefinition {
		name = defined.Name
	}
	tool := Tool{Name: name, Description: defined.Description, Parameters: defined.InputSchema}
	isKnown := slices.ContainsFunc(c.known, func(t Tool) bool { return t.Name == name })
	switch {
	case c.v.RefusesToolChanges || !c.has(betaInlineTools) && (isDefinition || !c.has(betaToolChanges)):
		return refusef("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'redacted_thinking', 'text', 'thinking', 'tool_result', 'tool_use'", path, change.Type)
	case name == "" || isDefinition && len(defined.InputSchema) == 0:
		return refusef("%s.tool: Field required", path)
	case change.Type == "tool_removal" && (isDefinition || !c.isOffered(name)):
		return refusef("%s.tool: there is no tool '%s' to remove", path, name)
	case !isDefinition && !isKnown:
		return refusef("%s.tool: the tool '%s' is not defined", path, name)
	}
	if i := slices.IndexFunc(c.known, func(t Tool) bool { return t.Name == name }); !isDefinition {
		tool = c.known[i]
	}
	c.known = replaceTool(c.known, tool)
	if c.offered = replaceTool(c.offered, tool); change.Type == "tool_removal" {
		c.offered = c.offered[:len(c.offered)-1]
	}
	return nil
}

// isOffered reports whether the model may call the tool.
func (c *conversation) isOffered(name string) bool {
	return slices.ContainsFunc(c.offered, func(t Tool) bool { return t.Name == name })
}

// replaceTool returns the tools with one at the end, in place of one of that name.
func replaceTool(tools []Tool, tool Tool) []Tool {
	return append(slices.DeleteFunc(slices.Clone(tools), func(t Tool) bool { return t.Name == tool.Name }), tool)
}

// setTools sets the tools that the request begins with.
func (c *conversation) setTools() {
	for _, raw := range c.req.Tools {
		var t toolDefinition
		if json.Unmarshal(raw.RawMessage, &t) != nil {
			continue // a tool of the server
		}
		c.known = append(c.known, Tool{t.Name, t.Description, t.InputSchema})
		if !raw.Defer {
			c.offered = append(c.offered, c.known[len(c.known)-1])
		}
	}
}

// checkAdditionalTools refuses an item that adds tools where OpenAI does, and adds them.
//
// The form is that of openai-go v3.98.0 (ResponseInputItemAdditionalToolsParam): "A list of additional tools made
// available at this item. Only `developer` is supported." Assumed: a name is free only once.
func (r *Responses) checkAdditionalTools(i int, raw json.RawMessage) error {
	var added struct {
		Role  string `json:"role"`
		Tools []Tool `json:"tools"`
	}
	param := fmt.Sprintf("input[%d]", i)
	switch err := json.Unmarshal(raw, &added); {
	case r.strict.RefusesToolChanges:
		return &ResponsesError{Message: "Invalid value: 'additional_tools'. Supported values are: 'message', 'reasoning', 'function_call' and 'function_call_output'.", Param: param + ".type", Code: "invalid_value"}
	case err != nil:
		return &ResponsesError{Message: err.Error(), Param: param, Code: "invalid_type"}
	case added.Role != "developer":
		return &ResponsesError{Message: "Invalid value for role: only 'developer' is supported.", Param: param + ".role", Code: "invalid_value"}
	case len(added.Tools) == 0:
		return &ResponsesError{Message: "Missing required parameter.", Param: param + ".tools", Code: "missing_required_parameter"}
	}
	for _, tool := range added.Tools {
		if slices.ContainsFunc(r.offered, func(t Tool) bool { return t.Name == tool.Name }) {
			return &ResponsesError{Message: fmt.Sprintf("Duplicate tool name '%s'.", tool.Name), Param: param + ".tools", Code: "invalid_value"}
		}
		r.offered = append(r.offered, tool)
	}
	return nil
}

// namedTool returns the last of the tools that the text names, otherwise another.
func namedTool(tools []Tool, text, otherwise string) string {
	words := strings.Fields(text)
	for _, t := range slices.Backward(tools) {
		if slices.Contains(words, t.Name) {
			return t.Name
		}
	}
	return otherwise
}
