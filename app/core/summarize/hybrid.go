package summarize

import (
	"context"
	"strings"

	"bobbin/app/core/cut"
)

// Hybrid is the strategy that lets a model write and code keep the facts: under
// the model's summary stands a ledger of files, commands, errors and URLs, merged
// with the ledger of the summary before, so that no round can lose them in
// rewording (C3). Safe for concurrent use.
type Hybrid struct {
	llm   *LLM
	count counter
}

// NewHybrid returns the strategy over a model's.
func NewHybrid(model *LLM) *Hybrid { return &Hybrid{llm: model, count: model.count} }

// Name is StrategyHybrid.
func (h *Hybrid) Name() string { return StrategyHybrid }

// summaryHeading stands over the model's part.
const summaryHeading = "## Conversation Summary"

const joinTokens = 8 // of the heading and of the lines between the parts

// Summarize asks the model for its part and appends the ledger, which has at most
// ledgerTokens, two fifths of the limit and half of what is replaced: that holds the
// ledger before, so that a small round does not shrink it. Errors are those of LLM.
func (h *Hybrid) Summarize(ctx context.Context, req Request) (Result, error) {
	previous, l := splitLedger(req.Previous)
	l.extract(req.Messages)
	budget := ledgerRoom(req.Limit)
	if req.Replaces > 0 {
		budget = min(budget, req.Replaces/2)
	}
	facts := l.render(h.count, budget)
	size := h.count.Text(facts) + joinTokens

	words := req
	words.Previous = withoutHeading(previous)
	words.Limit = max(req.Limit-size, 1)
	if req.Replaces > 0 {
		words.Replaces = max(req.Replaces-size, 1)
	}
	res, err := h.llm.summarize(ctx, words, true)
	res.Strategy = StrategyHybrid
	if err != nil {
		return res, err
	}
	written, _ := splitLedger(res.Content) // lists that the model wrote although it was told not to: nobody checked them
	if written = withoutHeading(written); written == "" {
		return res, errEmpty
	}
	res.Content = h.join(written, facts, req.Limit)
	res.Tokens = h.count.Text(res.Content)
	return res, nil
}

// withoutHeading takes our own heading off an earlier summary.
func withoutHeading(summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(summary, summaryHeading))
}

// join puts the parts together. The words give way to the facts when both
// together count more than each alone.
func (h *Hybrid) join(words, facts string, limit int) string {
	for room := limit - h.count.Text(facts); ; room -= max(limit/16, joinTokens) {
		parts := []string{summaryHeading, cut.Oldest(h.count, words, max(room, 0))}
		if facts != "" {
			parts = append(parts, "\n"+facts)
		}
		out := strings.Join(parts, "\n")
		if room <= 0 || h.count.Text(out) <= limit {
			return out
		}
	}
}
