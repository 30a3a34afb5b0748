package nodes

import (
	"regexp"

	"bobbin/app/core"
)

// sendableCalls returns the calls as every later prompt can hold them: with names that
// providers take, and with an id of their own. Some providers number the calls
// anew in every answer, or not at all.
func sendableCalls(calls []core.ToolCall, before ...[]core.Message) []core.ToolCall {
	used := usedCallIDs(before...)
	for i := range calls {
		if used[calls[i].ID] {
			calls[i].ID = "call_" + core.NewID[string]()
		}
		used[calls[i].ID] = true
		calls[i].Name = toolName(calls[i].Name)
	}
	return calls
}

// usedCallIDs returns the ids that no new call can have.
func usedCallIDs(before ...[]core.Message) map[string]bool {
	used := map[string]bool{"": true}
	for _, messages := range before {
		for _, m := range messages {
			for _, c := range m.ToolCalls {
				used[c.ID] = true
			}
		}
	}
	return used
}

// unfit matches what providers do not take in the name of a function.
var unfit = regexp.MustCompile(`[^a-zA-Z0-9_-]`)

// maxToolName is the longest name that they take.
const maxToolName = 64

// toolName returns the name in letters that providers take. A model that makes a
// name up would otherwise make all later prompts of its session refused; the name
// of a tool that there is stays as it is.
func toolName(name string) string {
	if name == "" {
		return "unnamed"
	}
	return core.Clip(unfit.ReplaceAllString(name, "_"), maxToolName)
}
