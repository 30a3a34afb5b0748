package apitest

import (
	"context"

	"bobbin/app/core"
)

// SlackThread records the call.
func (c Chat) SlackThread(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThreadStatus, error) {
	return core.SlackThreadStatus{}, c.recordCall(ctx, "SlackThread", tenant, session)
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
