package llm

import (
	"net/http"
	"slices"
	"strings"
)

// ToolChanges says how the tools of a conversation may change while its prompt begins as before.
type ToolChanges string

// The ways.
const (
	ToolsFixed      ToolChanges = ""        // not at all
	ToolsAdded      ToolChanges = "add"     // system messages add tools, of names that no tool had before
	ToolsChangeable ToolChanges = "replace" // they also remove tools, and put others in their place
)

// RefusedToolChanges returns the refusal of the request with KindToolChangesRefused if it is one of
// what adds and removes tools in it: the account or the model does not know that. Nil = it is not.
func (r Request) RefusedToolChanges(e *Error) *Error {
	changes := func(m Message) bool { return len(m.AddedTools)+len(m.RemovedTools) > 0 }
	if e == nil || e.Kind != KindInvalid || e.Status != http.StatusBadRequest || !slices.ContainsFunc(r.Messages, changes) {
		return nil
	}
	names := []string{"tool_addition", "tool_removal", "tool_definition", "inline-tools", "mid-conversation-tool-changes", "additional_tools"}
	if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(e.Message, name) }) {
		return nil
	}
	return e.WithKind(KindToolChangesRefused)
}
