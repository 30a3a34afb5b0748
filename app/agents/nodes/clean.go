package nodes

import (
	"cmp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// sendableCalls returns the calls as every later prompt can hold them: with names that
// providers take, and with an id of their own. Some providers number the calls
// anew in every answer, or not at all, and a model may make a name up.
func sendableCalls(calls []core.ToolCall, before ...[]core.Message) []core.ToolCall {
	used := usedCallIDs(before...)
	for i := range calls {
		if used[calls[i].ID] {
			calls[i].ID = "call_" + core.NewID[string]()
		}
		used[calls[i].ID] = true
		calls[i].Name = cmp.Or(tools.FitName(calls[i].Name), "unnamed")
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
