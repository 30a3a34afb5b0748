package nodes_test

import (
	"bobbin/app/core"
)

func calls(ids ...string) core.Message {
	m := core.Message{Role: core.RoleAssistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, core.ToolCall{ID: id})
	}
	return m
}
