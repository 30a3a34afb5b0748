package models

import "bobbin/app/core"

// Approval is a row of approvals.
type Approval struct {
	core.Approval
	Owner string
}

// Core returns the approval of the row.
func (r Approval) Core() core.Approval { return r.Approval }
