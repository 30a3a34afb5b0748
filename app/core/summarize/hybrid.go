package summarize

import (
	"context"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// Hybrid is the strategy in which a model writes and code keeps the facts: a ledger of
// files, commands, errors and URLs follows the model's summary. It is merged with the
// ledger of the previous summary, so that no rewording loses facts. Safe for concurrent
// use.
type Hybrid struct {
	llm   *LLM
	count core.TextCounter
}

// NewHybrid returns the strategy that uses model for the text.
func NewHybrid(model *LLM) *Hybrid { return &Hybrid{llm: model, count: model.count} }

// Name returns StrategyHybrid.
func (h *Hybrid) Name() string { return StrategyHybrid }

// Room returns LLM.Room of the model.
func (h *Hybrid) Room(req Request) int { return h.llm.Room(req) }

// summaryHeading is the heading of the model's part.
const summaryHeading = "## Conversation Summary"

const joinTokens = 8 // of the heading and the lines between the parts

// Summarize asks the model for its part and appends the ledger. The ledger has at most
// ledgerTokens, two fifths of the limit, and half of what is replaced: that includes the
// previous ledger, so that a small summary does not shrink it. Errors are those of LLM.
func (h *Hybrid) Summarize(ctx context.Context, req Request) (Result, error) {
	previous, l := splitLedger(req.Previous)
	l.extractFacts(req.withoutInstructions())
	l.dropInstructions(req.Instructions)
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
	res, err := h.llm.writeSummary(ctx, words, true)
	res.Strategy = StrategyHybrid
	if err != nil {
		return res, err
	}
	written, _ := splitLedger(res.Content) // drops lists that the model wrote against its instructions: no code checked them
	if written = withoutHeading(written); written == "" {
		return res, errEmpty
	}
	res.Content = h.joinParts(written, facts, req.Limit)
	res.Tokens = h.count.Text(res.Content)
	return res, nil
}

// withoutHeading removes our own heading from an earlier summary.
func withoutHeading(summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(summary, summaryHeading))
}

// joinParts joins the parts. It cuts the words, not the facts, if both together have more
// tokens than the limit.
func (h *Hybrid) joinParts(words, facts string, limit int) string {
	for room := limit - h.count.Text(facts); ; room -= max(limit/16, joinTokens) {
		parts := []string{summaryHeading, prompttext.Oldest(h.count, words, max(room, 0))}
		if facts != "" {
			parts = append(parts, "\n"+facts)
		}
		out := strings.Join(parts, "\n")
		if room <= 0 || h.count.Text(out) <= limit {
			return out
		}
	}
}
