package apitest

import (
	"context"

	"bobbin/app/core"
)

// Usage is the backend as the books.
type Usage struct {
	*Backend
	core.UsageStore // the methods that the API does not call
}

// SessionTotal returns a fixed usage.
func (u Usage) SessionTotal(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.UsageTotal, error) {
	return core.UsageTotal{Calls: 3, InputTokens: 5120, OutputTokens: 310, CacheReadTokens: 4096, CostMicroUSD: 1234, UnpricedCalls: 1}, u.recordCall(ctx, "Usage.SessionTotal", tenant, id)
}

// OfRun records the call.
func (u Usage) OfRun(ctx context.Context, run core.Run) ([]core.ModelCall, error) {
	return nil, u.recordCall(ctx, "Usage.OfRun", run.Tenant(), run.ID)
}

// Usage records the call.
func (u Usage) Usage(ctx context.Context, tenant core.Tenant, q core.UsageQuery) (core.UsageReport, error) {
	return core.UsageReport{}, u.recordCall(ctx, "Usage.Usage", tenant, q)
}
