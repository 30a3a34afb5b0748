package records

import (
	"strings"

	"bobbin/app/core"
)

// Approvals checks that each question was asked once and closed once, and that the tool
// call has the result that goes with that: none that was not approved has one of the tool.
func (c *Check) Approvals() {
	asked, closed := map[core.ApprovalID]int{}, map[core.ApprovalID]core.Approval{}
	for _, e := range c.Events {
		a := Decoded[core.ApprovalData](e).Approval
		switch e.Type {
		case core.EventApprovalRequested:
			asked[a.ID]++
		case core.EventApprovalDecided:
			if _, twice := closed[a.ID]; twice || asked[a.ID] != 1 {
				c.Errorf("question %s was asked %d times, and closed again (%v)", a.ID, asked[a.ID], twice)
			}
			closed[a.ID] = a
		}
	}
	results := map[core.RunID]map[string]string{}
	for _, m := range c.Messages {
		if m.Role == core.RoleTool {
			if results[m.RunID] == nil {
				results[m.RunID] = map[string]string{}
			}
			results[m.RunID][m.ToolCallID] = m.Content
		}
	}
	for id := range asked {
		a, done := closed[id]
		result, there := results[a.RunID][a.ToolCallID]
		refused := strings.HasPrefix(result, "not approved")
		if !done || !there || refused == (a.Status == core.ApprovalApproved) {
			c.Errorf("question %s is %q, and the result of its call is %q (%v)", id, a.Status, result, there)
		}
		c.Found.Asked++
	}
}
