package apitest

import (
	"context"
	"time"

	"bobbin/app/core"
)

// Usage is the backend as the books.
type Usage struct {
	*Backend
	core.UsageStore // the methods that the API does not call
}

// sampleTotal is what everything came to.
func sampleTotal() core.UsageTotal {
	return core.UsageTotal{
		Calls: 3, InputTokens: 5120, OutputTokens: 310, CacheReadTokens: 4096, CostMicroUSD: 1234, UnpricedCalls: 1,
	}
}

// SessionTotal returns a fixed usage.
func (u Usage) SessionTotal(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.UsageTotal, error) {
	return sampleTotal(), u.recordCall(ctx, "Usage.SessionTotal", tenant, id)
}

// OfRun returns one call of the run.
func (u Usage) OfRun(ctx context.Context, run core.Run) ([]core.ModelCall, error) {
	return []core.ModelCall{{
		ID: "01920000-0000-7000-8000-000000000071", SessionID: run.SessionID, RunID: run.ID, Agent: run.Agent, Purpose: core.PurposeAnswer, Model: "gpt-4o-mini", Provider: "openai",
		Estimated: 5020, Usage: core.Usage{InputTokens: 5120, OutputTokens: 310, CacheReadTokens: 4096}, Cost: new(int64(1234)), FinishReason: core.FinishStop,
		Duration: 1500 * time.Millisecond, CreatedAt: run.CreatedAt,
	}}, u.recordCall(ctx, "Usage.OfRun", run.Tenant(), run.ID)
}

// Usage returns a report with one row.
func (u Usage) Usage(ctx context.Context, tenant core.Tenant, q core.UsageQuery) (core.UsageReport, error) {
	next := "b3RoZXI"
	return core.UsageReport{
		GroupBy: q.GroupBy, From: q.From.Truncate(time.Second), To: q.To.Truncate(time.Second), Total: sampleTotal(),
		Items: []core.UsageRow{{Key: "2026-01-31", UsageTotal: sampleTotal()}}, NextCursor: &next,
	}, u.recordCall(ctx, "Usage.Usage", tenant, q)
}
