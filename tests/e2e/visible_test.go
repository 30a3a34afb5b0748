package e2e_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// The price of a compaction is in /context and in a dry run, and the compaction keeps to it.
func TestPriceOfCompactionOverHTTP(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		c.Models = append(c.Models, config.Model{
			Name: "house", Provider: "openai", Model: "house", BaseURL: p.URL, ContextWindow: 128_000, MaxOutputTokens: 4_096,
			InputPrice: 3, OutputPrice: 15, CacheReadPrice: 0.3,
		})
		c.DefaultLLM = "house"
	})
	id := apptest.NewSession(t, h.Client, core.Session{})
	if empty := contextOf(t, h.Client, id); empty.Compaction == nil || empty.Compaction.Reason != core.CompactionNothingToDo {
		t.Errorf("got the price %+v of an empty session, want that there is nothing to summarize", empty.Compaction)
	}
	bringIn(t, h.Client, id, core.ImportLines, history(80))
	before := contextOf(t, h.Client, id)
	price := before.Compaction
	if price == nil || price.Turns == nil || price.Now != before.Used || price.After >= price.Now || price.CacheLost == 0 || price.CountedIn != core.CountedInDollars {
		t.Fatalf("got the price %+v, want one in dollars that pays off", price)
	}
	plan, err := h.DryRun(t.Context(), id, core.PlanPreview{Content: "And then?"})
	if err != nil || plan.Context.Compaction == nil || plan.Context.Compaction.Turns == nil {
		t.Errorf("got the price %+v of a dry run, %v", plan.Context.Compaction, err)
	}
	made, err := h.Summarize(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if after := contextOf(t, h.Client, id); after.Used > price.After || made.TokenCount > price.SummaryOutput {
		t.Errorf("got a prompt of %d tokens with a summary of %d, announced were %d with %d", after.Used, made.TokenCount, price.After, price.SummaryOutput)
	}
}
