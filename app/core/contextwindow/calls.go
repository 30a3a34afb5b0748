package contextwindow

import (
	"cmp"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// addAtom appends a message and, after one with tool calls, the results in the order of the
// calls; unmatched results follow.
func (p *assembly) addAtom(atom []Slot) {
	head, rest := atom[0], slices.Clone(atom[1:])
	if head.Place == core.PlaceCovered {
		p.addNotes(head)
		return
	}
	p.addMessage(head, p.parts.message(head.ID))
	for _, call := range head.Calls {
		i := slices.IndexFunc(rest, func(s Slot) bool { return s.CallID == call && !s.Orphan })
		switch {
		case i >= 0:
			p.addMessage(rest[i], p.parts.message(rest[i].ID))
			rest = slices.Delete(rest, i, i+1) // two calls may have one id
		case head.Place != core.PlaceLeftOut:
			p.appendMessage(p.newMessage(llm.Message{Role: core.RoleTool, ToolCallID: call, Content: "[no result: the call was interrupted]"}))
		}
	}
	for _, s := range rest {
		p.addMessage(s, p.parts.message(s.ID))
	}
}

// separateCalls gives each tool call of a prompt an id of its own, and its result the same one:
// providers refuse a prompt with two equal ids, and some of them number the calls anew in every
// answer. The log keeps the ids as they came. The results follow their calls, as addAtom sends
// them; ids do not count as tokens.
func separateCalls(messages []PromptMessage) {
	used := map[string]bool{"": true}
	results := map[string][]string{} // ids of the latest calls without a result, by the id in the log
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Role == core.RoleTool:
			if ids := results[m.ToolCallID]; len(ids) > 0 {
				results[m.ToolCallID], m.ToolCallID = ids[1:], ids[0]
			}
		case len(m.ToolCalls) > 0:
			clear(results)
			m.ToolCalls = slices.Clone(m.ToolCalls) // the message in the log has the same
			for j := range m.ToolCalls {
				c := &m.ToolCalls[j]
				id := c.ID
				for n := 2; used[id]; n++ {
					id = fmt.Sprintf("%s_%d", cmp.Or(c.ID, "call"), n)
				}
				used[id] = true
				results[c.ID] = append(results[c.ID], id)
				c.ID = id
			}
		}
	}
}
