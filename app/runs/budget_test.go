package runs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/runs"
	"bobbin/tests/compare"
)

// usageRecords is what everybody spent, and since when they were asked.
type usageRecords struct {
	core.UsageStore

	spent core.Spent
	err   error
	asked []time.Time
}

func (b *usageRecords) Spent(_ context.Context, _ string, since time.Time) (core.Spent, error) {
	b.asked = append(b.asked, since)
	return b.spent, b.err
}

// priced is a model whose calls have a cost.
var priced = llm.Info{Name: "priced", Provider: "openai", InputPrice: 1}

// A limit in US dollars refuses models whose cost it would not see; what costs nothing
// is seen, and a limit in tokens sees every model.
func TestBudgetCheckRefusesModelsWithoutPrice(t *testing.T) {
	t.Parallel()
	limits := map[string]runs.DailyLimit{"usd": {MicroUSD: 1}, "tokens": {Tokens: 1}}
	for _, c := range []struct {
		owner   string
		model   llm.Info
		refused bool
	}{
		{"usd", llm.Info{Name: "m", Provider: "openai"}, true},
		{"usd", priced, false},
		{"usd", llm.Info{Name: "demo", Provider: "demo"}, false},
		{"usd", llm.Info{Name: "m", Provider: "ollama"}, false},
		{"tokens", llm.Info{Name: "m", Provider: "openai"}, false},
		{"nobody", llm.Info{Name: "m", Provider: "openai"}, false},
	} {
		err := runs.NewBudget(&usageRecords{}, limits, time.Now).Check(t.Context(), c.owner, c.model)
		var shown *core.Error
		refused := errors.As(err, &shown) && shown.Code == core.CodeModelUnpriced && errors.Is(err, core.ErrUnprocessable)
		compare.Equal(t, "with: want refused", []any{c.refused, c.refused}, []any{refused, (err != nil)})
	}
}

// Spend limits are per key and day of UTC.
func TestBudgetCheck(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 1, 30, 0, 0, time.FixedZone("", 3*3600)) // 22:30 of the day before, in UTC
	limits := map[string]runs.DailyLimit{"usd": {MicroUSD: 1_500_000}, "tokens": {Tokens: 1000}, "both": {MicroUSD: 1_500_000, Tokens: 1000}}
	const until = " a day is reached; it begins anew at 2026-03-01T00:00:00Z, or the operator raises it (auth.limits)"
	for _, c := range []struct {
		owner string
		spent core.Spent
		want  string
	}{
		{"nobody", core.Spent{Tokens: 1 << 40, MicroUSD: 1 << 40}, ""},
		{"usd", core.Spent{Tokens: 1 << 40, MicroUSD: 1_499_999}, ""},
		{"usd", core.Spent{MicroUSD: 1_500_000}, "the limit of 1.5 US dollars" + until},
		{"tokens", core.Spent{Tokens: 999, MicroUSD: 1 << 40}, ""},
		{"tokens", core.Spent{Tokens: 1000}, "the limit of 1000 tokens" + until},
		{"both", core.Spent{Tokens: 1001, MicroUSD: 1}, "the limit of 1000 tokens" + until},
		{"both", core.Spent{}, ""},
	} {
		b := &usageRecords{spent: c.spent}
		err := runs.NewBudget(b, limits, func() time.Time { return now }).Check(t.Context(), c.owner, priced)
		compare.True(t, c.owner != "nobody" || len(b.asked) == 0, "the books were asked for an owner without a limit")
		if c.want == "" {
			compare.Error(t, fmt.Sprintf("%+v", c), nil, err)
			continue
		}
		var e *core.Error
		if !errors.As(err, &e) || e.Message != c.want || !errors.Is(err, core.ErrRateLimited) || e.Code != core.CodeSpendLimit || e.RetryAfter != 90*time.Minute {
			t.Errorf("%+v: got %#v, want %q for 90 min", c, err, c.want)
		}
		if want := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC); !b.asked[0].Equal(want) {
			t.Errorf("asked since %s, want %s", b.asked[0], want)
		}
	}
	b := &usageRecords{err: errors.New("disk on fire")}
	compare.Error(t, "err: want that of the books", b.err, runs.NewBudget(b, limits, time.Now).Check(t.Context(), "usd", priced))
}
