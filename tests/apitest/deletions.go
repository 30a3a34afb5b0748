package apitest

import (
	"cmp"
	"context"

	"bobbin/app/core"
)

// DeletionID is the id of the deletion that a backend holds.
const DeletionID = core.DeletionID("01920000-0000-7000-8000-000000000061")

// Deletions is the backend as the deletion service.
type Deletions struct{ *Backend }

// Session answers an accepted deletion.
func (d Deletions) Session(ctx context.Context, tenant core.Tenant, id core.SessionID, _ bool) (core.Deletion, error) {
	return core.Deletion{ID: DeletionID, Kind: core.DeleteSession, SessionID: id, Status: core.DeletionPending, CreatedAt: Time()}, cmp.Or(d.recordCall(ctx, "Deletions.Session", tenant, id), missing("session", id, SessionID))
}

// User answers a running deletion.
func (d Deletions) User(ctx context.Context, tenant core.Tenant, user string, _ bool) (core.Deletion, error) {
	return core.Deletion{ID: DeletionID, Kind: core.DeleteUser, Status: core.DeletionRunning, RowsTotal: 100, RowsLeft: 40, Attempts: 1, CreatedAt: Time()}, d.recordCall(ctx, "Deletions.User", tenant, user)
}

// Get records the call.
func (d Deletions) Get(ctx context.Context, tenant core.Tenant, id core.DeletionID) (core.Deletion, error) {
	return core.Deletion{}, d.recordCall(ctx, "Deletions.Get", tenant, id)
}
