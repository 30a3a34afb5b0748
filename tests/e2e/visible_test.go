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

// Why the provider's cache missed is in the report of the run, and in the metrics: nothing while the
// conversation grows, then the edited message and the summary.
func TestCacheMissesOverHTTP(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Cache: true})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withKnownModel(p, "anthropic", 128_000))
	id := apptest.NewSession(t, h.Client, core.Session{})
	w := apptest.NewWriter(5)
	var last apptest.Turn
	for n := range 6 {
		last = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(n)})
		if r := reported(t, h.Client, last.Run.ID); len(r.CacheMisses) > 0 {
			t.Errorf("got the misses %+v of a conversation that grows", r.CacheMisses)
		}
	}
	log := wholeLog(t, h.Client, id)
	if _, err := h.ReviseMessage(t.Context(), id, log[0].ID, "A question in other words."); err != nil {
		t.Fatal(err)
	}
	h.Restart()
	miss := func(question string) core.CacheMiss {
		t.Helper()
		last = apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question})
		misses := reported(t, h.Client, last.Run.ID).CacheMisses
		if len(misses) != 1 || misses[0].Call != 1 {
			t.Fatalf("got the misses %+v, want one of the first call", misses)
		}
		return misses[0]
	}
	if got := miss("Once more?"); got.Part != core.PromptOfMessage || got.Index != 1 || got.MessageID != log[0].ID || got.Seq != 1 || got.Reason != core.CacheMessages {
		t.Errorf("got %+v after an edit, want the first message", got)
	}
	if _, err := h.Summarize(t.Context(), id, ""); err != nil {
		t.Fatal(err)
	}
	if got := miss("And now?"); got.Part != core.PromptSystem || got.Reason != core.CacheCompaction {
		t.Errorf("got %+v after a summary, want the system prompt", got)
	}
	m := scrape(t, h.Client)
	m.want(t, 1, "bobbin_context_cache_misses_total", "model=house", "part=message", "reason=messages")
	m.want(t, 1, "bobbin_context_cache_misses_total", "model=house", "part=system", "reason=compaction")
}
