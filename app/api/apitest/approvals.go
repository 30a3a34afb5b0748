package apitest

import (
	"context"

	"bobbin/app/core"
)

// ApprovalID names the question of Approval.
const ApprovalID = core.ApprovalID("01920000-0000-7000-8000-000000000051")

// Approval returns an open question of the run RunID.
func Approval() core.Approval {
	until := Time().AddDate(0, 0, 1)
	return core.Approval{
		ID: ApprovalID, RunID: RunID, SessionID: SessionID, ToolCallID: "call-1", Tool: "current_time", Arguments: `{"zone": "UTC"}`,
		Mode: core.ApprovalAlways, Status: core.ApprovalOpen, RequestedAt: Time(), ExpiresAt: &until,
	}
}

// Decide answers the question as it was decided.
func (c Chat) Decide(ctx context.Context, scope core.Scope, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	if err := c.called(ctx, "Decide", scope, run, id, d); err != nil {
		return core.Approval{}, err
	}
	at, a := Time(), Approval()
	a.Status, a.Comment, a.DecidedBy, a.DecidedAt = d.Status(), d.Comment, scope.Owner, &at
	return a, nil
}
