package apitest

import (
	"context"
	"time"

	"bobbin/app/core"
)

// Usage is the backend as the books.
type Usage struct{ *Backend }

// total is what everything came to.
func total() core.UsageTotal {
	return core.UsageTotal{
		Calls: 3, InputTokens: 5120, OutputTokens: 310, CacheReadTokens: 4096, CostMicroUSD: 1234, UnpricedCalls: 1,
	}
}

// SessionTotal returns a fixed usage.
func (u Usage) SessionTotal(ctx context.Context, scope core.Scope, id core.SessionID) (core.UsageTotal, error) {
	if err := u.called(ctx, "Usage.SessionTotal", scope, id); err != nil {
		return core.UsageTotal{}, err
	}
	return total(), nil
}

// Usage returns a report with one row.
func (u Usage) Usage(ctx context.Context, scope core.Scope, q core.UsageQuery) (core.UsageReport, error) {
	if err := u.called(ctx, "Usage.Usage", scope, q); err != nil {
		return core.UsageReport{}, err
	}
	next := "b3RoZXI"
	return core.UsageReport{
		GroupBy: q.GroupBy, From: q.From.Truncate(time.Second), To: q.To.Truncate(time.Second), Total: total(),
		Items: []core.UsageRow{{Key: "2026-01-31", UsageTotal: total()}}, NextCursor: &next,
	}, nil
}
