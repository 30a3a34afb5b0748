package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// cachedTurns is how long the conversation is whose prompts a provider caches: 50
// turns.
const cachedTurns = 50

// R5: the bytes of a prompt begin those of the next one until
// a compaction, tools and system first, so that a provider's cache holds all but what
// is new. The fake provider caches by the rules that OpenAI and Anthropic publish. What
// it held is told of each run, in the books and in the metrics.
func TestCache(t *testing.T) {
	t.Parallel()
	ours, err := provider.Cl100k()
	if err != nil {
		t.Fatal(err)
	}
	for _, dialect := range []string{"openai", "anthropic"} {
		p := apptest.NewProvider(t, provider.Options{
			Record: true, Cache: true, Count: func(r provider.Received) int { return provider.ByTheBook(r, ours) },
		})
		h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withKnownModel(p, dialect, 16_384))
		id := cachedTalk(t, h, p)
		all, s := p.Received(), session(t, h.Client, id)
		read, _, tokens := cacheOf(all)
		if float64(read) < 0.8*float64(tokens) || s.SummaryCount == 0 {
			t.Errorf("%s: %d of %d tokens from the cache with %d summaries, want 80 %%", dialect, read, tokens, s.SummaryCount)
		}
		books := bookedOf(t, h.Client, id, p.Requests())
		m := scrape(t, h.Client)
		if books.CacheReadTokens < int64(read) || books.InputTokens <= int64(tokens) {
			t.Errorf("%s: got the books %+v, want the answers' %d of %d tokens in them, and the summaries'", dialect, books, read, tokens)
		}
		m.want(t, float64(books.InputTokens), "bobbin_model_input_tokens_total", "model=house")
		m.want(t, float64(books.CacheReadTokens), "bobbin_model_cache_read_tokens_total", "model=house")
		m.want(t, float64(books.CacheWriteTokens), "bobbin_model_cache_write_tokens_total", "model=house")
	}
}

// cachedTalk holds a conversation and holds what each run says of the cache against
// what the provider says. Only a compaction may lead to a prompt that does not begin
// with all of the one before.
func cachedTalk(t *testing.T, h *apptest.Bobbin, p *provider.Server) (id core.SessionID) {
	t.Helper()
	id = apptest.NewSession(t, h.Client, core.Session{Timezone: "Europe/Vienna", Instructions: "Be brief."})
	w := apptest.NewWriter(5)
	// A summary is made beside the runs: on a busy machine it comes some turns later.
	for n := 0; n < cachedTurns || n < 4*cachedTurns && session(t, h.Client, id).SummaryCount == 0; n++ {
		before := len(p.Received())
		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Question(n + 1)})
		all := p.Received()
		read, written, tokens := cacheOf(all[before:])
		if u := got.Run.Usage; u.CacheReadTokens != read || u.CacheWriteTokens != written || u.InputTokens != tokens {
			t.Errorf("turn %d: got the usage %+v, the provider says %d tokens, %d read, %d written", n+1, u, tokens, read, written)
		}
		broken := brokenPrefixes(all, before)
		compacted := summaryOf(all[len(all)-1]) != summaryOf(all[max(before-1, 0)]) // maybe beside the run
		if r := reported(t, h.Client, got.Run.ID); len(broken) > 0 && len(r.Rungs) == 0 && !compacted {
			t.Errorf("turn %d: the prompt does not go on where the last one ended: %s", n+1, broken[0])
		}
	}
	return id
}

// bookedOf returns a session's usage when so many calls are in the books: a summary that
// is made beside a run is booked when it is done.
func bookedOf(t *testing.T, c *client.Client, id core.SessionID, calls int64) core.UsageTotal {
	t.Helper()
	for limit := time.Now().Add(apptest.Patience); ; {
		u := usageOf(t, c, id)
		switch {
		case u.Calls == calls:
			return u
		case time.Now().After(limit):
			t.Fatalf("got %d calls in the books, want the provider's %d", u.Calls, calls)
		}
		apptest.PauseBriefly(t)
	}
}

// brokenPrefixes returns what is wrong with the requests from the given one on: each is
// to begin with all of the one before it.
func brokenPrefixes(all []provider.Received, from int) []string {
	var out []string
	for i := max(from, 1); i < len(all); i++ {
		a, b := texts(all[i-1]), texts(all[i])
		for j := range a {
			if j >= len(b) || a[j] != b[j] {
				out = append(out, fmt.Sprintf("piece %d of %d was %.120q, is %.120q", j, len(a), a[j], slices.Concat(b, []string{"nothing"})[min(j, len(b))]))
				break
			}
		}
	}
	return out
}

// summaryOf returns the summary in a prompt; empty = there is none.
func summaryOf(r provider.Received) string {
	_, rest, _ := strings.Cut(strings.Join(r.System, "\n\n"), summaryBegins)
	summary, _, _ := strings.Cut(rest, summaryEnds)
	return summary
}

func texts(r provider.Received) []string {
	var out []string
	for _, p := range r.Pieces {
		out = append(out, p.Text)
	}
	return out
}

// cacheOf adds up what the provider's cache held of the prompts.
func cacheOf(all []provider.Received) (read, written, tokens int) {
	for _, r := range all {
		read, written, tokens = read+r.CacheRead, written+r.CacheWrite, tokens+r.Tokens
	}
	return read, written, tokens
}
