package cli

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// A cost is what is known, and at least that.
func TestUsageCells(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]core.UsageTotal{
		"$0.0100":      {Calls: 2, CostMicroUSD: 10_000},
		"≥ $0.0100":    {Calls: 2, CostMicroUSD: 10_000, UnpricedCalls: 1},
		"no price set": {Calls: 2, UnpricedCalls: 1},
	} {
		if got := usageCells(u); !strings.HasSuffix(got, "\t"+want+"\t") {
			t.Errorf("%+v: got %q, want %q", u, got, want)
		}
	}
}
