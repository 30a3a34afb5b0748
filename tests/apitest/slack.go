package apitest

import (
	"context"

	"bobbin/app/core"
)

// slackThread is a thread that the session is attached to.
func slackThread() core.SlackThread {
	return core.SlackThread{SessionID: SessionID, Owner: "ann", Team: "T012ABCDEF", Channel: "C012ABCDEF", Thread: "1700000000.000100", Mode: core.SlackTwoWay}
}

// SlackThread answers a thread with a post of which it is unknown whether it is in Slack.
func (c Chat) SlackThread(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThreadStatus, error) {
	faults := []core.SlackFault{{ItemID: string(AnswerID), Part: 1, State: core.SlackPostUnknown, Reason: "Slack's answer was lost", CreatedAt: Time()}}
	since := Time()
	return core.SlackThreadStatus{SlackThread: slackThread(), BehindSince: &since, Reason: "auth.test: invalid_auth", Faults: faults}, c.recordCall(ctx, "SlackThread", tenant, session)
}

// FixSlackPost records the call.
func (c Chat) FixSlackPost(ctx context.Context, tenant core.Tenant, fix core.SlackPostFix) error {
	return c.recordCall(ctx, "FixSlackPost", tenant, fix)
}

// AttachSlack answers the thread.
func (c Chat) AttachSlack(ctx context.Context, tenant core.Tenant, t core.SlackThread) (core.SlackThread, error) {
	return t, c.recordCall(ctx, "AttachSlack", tenant, t)
}

// DetachSlack records the call.
func (c Chat) DetachSlack(ctx context.Context, tenant core.Tenant, session core.SessionID) error {
	return c.recordCall(ctx, "DetachSlack", tenant, session)
}
