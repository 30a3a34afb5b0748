package transfer

import "bobbin/app/core"

// order checks that every tool result stands behind the assistant's message that
// asked for it, as providers want it. Results in any order, and calls without a
// result, are right. The zero value is ready.
type order struct {
	open   map[string]int    // calls of the last assistant message without a result, by id
	tools  map[string]string // what they call
	unsure bool              // a message before could not be read: what refers to it is not to blame
	names  map[string]bool   // client message ids so far
}

// placeNext takes the next message and returns it with the name of its tool, or says
// what is wrong.
func (o *order) placeNext(m core.Message) (core.Message, error) {
	if id := m.ClientMessageID; id != "" {
		if o.names[id] {
			return m, core.Errorf(core.ErrInvalid, "client_message_id %s is there twice", id)
		}
		if o.names == nil {
			o.names = map[string]bool{}
		}
		o.names[id] = true
	}
	switch m.Role {
	case core.RoleTool:
		if o.open[m.ToolCallID] == 0 {
			if o.unsure {
				return m, nil
			}
			return m, core.Errorf(core.ErrInvalid,
				"tool_call_id %s: the assistant's message before has no such call that waits for its result", m.ToolCallID)
		}
		o.open[m.ToolCallID]--
		if m.ToolName == "" {
			m.ToolName = o.tools[m.ToolCallID]
		}
		return m, nil
	case core.RoleSystem: // stands in no prompt, so also between a call and its result
	default:
		o.open, o.tools, o.unsure = map[string]int{}, map[string]string{}, false
		for _, c := range m.ToolCalls {
			o.open[c.ID]++
			o.tools[c.ID] = c.Name
		}
	}
	return m, nil
}
