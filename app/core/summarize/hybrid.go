package summarize

import (
	"context"
	"strings"

	"bobbin/app/core"
)

// Hybrid is the strategy in which a model writes and code keeps what may not fade: a ledger of the
// users' newest messages, files, commands, errors and URLs follows the model's summary. It is
// merged with the ledger of the previous summary, so that no rewording loses facts. Safe for
// concurrent use.
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

const (
	joinTokens   = 8   // of the heading and the lines between the parts
	ledgerTokens = 600 // of the ledger inside the limit of the summary
)

// newLedger returns the sections of a ledger, empty.
func newLedger() outline {
	return append(outline{messageSection(userHeading, 1)}, factSections()...)
}

// Summarize asks the model for its part and appends the ledger. The ledger has at most
// ledgerTokens, two fifths of the limit, and half of what is replaced: that includes the
// previous ledger, so that a small summary does not shrink it. The users' messages have at most
// half of it. Errors are those of LLM.
func (h *Hybrid) Summarize(ctx context.Context, req Request) (Result, error) {
	ledger := newLedger()
	words := req
	words.Previous = withoutHeading(ledger.parse(req.Previous))
	req.Messages = core.WithoutRefused(req.Messages, core.FinishContentFilter, core.FinishRefused) // words that a provider may refuse
	ledger.addFacts(req.Messages)
	ledger.addUserMessages(req.quotable())
	ledger.dropInstructions(req.Instructions)
	budget := min(ledgerTokens, req.Limit*2/5)
	if req.Replaces > 0 {
		budget = min(budget, req.Replaces/2)
	}
	said := ledger[:1].render(h.count, budget/2)
	facts := ledger[1:].render(h.count, budget-h.count.Text(said)-1)
	ledgerText := strings.Trim(said+"\n\n"+facts, "\n")
	size := h.count.Text(ledgerText) + joinTokens

	words.Limit = max(req.Limit-size, 1)
	if req.Replaces > 0 {
		words.Replaces = max(req.Replaces-size, 1)
	}
	res, err := h.llm.writeSummary(ctx, words, true)
	res.Strategy = StrategyHybrid
	if err != nil {
		return res, err
	}
	written := withoutHeading(newLedger().parse(res.Content)) // drops lists that the model wrote against its instructions: no code checked them
	if written == "" {
		return res, errEmpty
	}
	res.Content = join(h.count, summaryHeading, written, ledgerText, req.Limit)
	res.Tokens = h.count.Text(res.Content)
	return res, nil
}

// withoutHeading removes our own heading from an earlier summary.
func withoutHeading(summary string) string {
	return strings.TrimSpace(strings.TrimPrefix(summary, summaryHeading))
}
