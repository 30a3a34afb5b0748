package apitest

import (
	"context"

	"bobbin/app/core"
)

// ApprovalID is the id of Approval.
const ApprovalID = core.ApprovalID("01920000-0000-7000-8000-000000000051")

// Approval returns a pending approval of the run RunID.
func Approval() core.Approval {
	until := Time().AddDate(0, 0, 1)
	return core.Approval{
		ID: ApprovalID, Kind: core.KindApproval, RunID: RunID, SessionID: SessionID, ToolCallID: "call-1", Tool: "current_time", Arguments: `{"zone": "UTC"}`,
		Mode: core.ApprovalAlways, Status: core.ApprovalOpen, RequestedAt: Time(), ExpiresAt: &until,
	}
}

// Decide answers the decided approval.
func (c Chat) Decide(ctx context.Context, tenant core.Tenant, run core.RunID, id core.ApprovalID, d core.ApprovalDecision) (core.Approval, error) {
	at, a := Time(), Approval()
	a.Status, a.Comment, a.DecidedBy, a.DecidedAt = d.Status(), d.Comment, tenant.Owner, &at
	a.Edited, a.Failed = d.Arguments, d.IsError
	return a, c.recordCall(ctx, "Decide", tenant, run, id, d)
}

// AnswerCalls answers the run.
func (c Chat) AnswerCalls(ctx context.Context, tenant core.Tenant, session core.SessionID, results []core.CallResult) (core.Run, error) {
	return c.Run, c.recordCall(ctx, "AnswerCalls", tenant, session, results)
}
