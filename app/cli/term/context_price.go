package term

import (
	"fmt"
	"strings"

	"bobbin/app/core"
)

// describePrice says what a compaction now would cost, and when it pays off.
func describePrice(p core.CompactionPrice) string {
	switch p.Reason {
	case core.CompactionNothingToDo:
		return "a summary now: there is nothing to summarize"
	case core.CompactionNotSmaller:
		return "a summary now: the prompt would not be smaller"
	case core.CompactionDoesNotFit:
		return "a summary now: the prompt would not fit"
	}
	parts := []string{fmt.Sprintf("%s → %s tokens per turn", core.Number(p.Now), core.Number(p.After))}
	if p.CacheLost > 0 {
		parts = append(parts, fmt.Sprintf("up to %s tokens of cache lost", core.Number(p.CacheLost)))
	}
	if p.SummaryModel != "" {
		cost := fmt.Sprintf("it costs up to %s tokens", core.Number(p.SummaryInput+p.SummaryOutput))
		if p.SummaryCost != nil && *p.SummaryCost > 0 {
			cost += fmt.Sprintf(" ($%.4f)", float64(*p.SummaryCost)/1e6)
		}
		parts = append(parts, cost)
	}
	if p.Turns != nil {
		parts = append(parts, fmt.Sprintf("pays off after %s (in %s)", Pluralize(*p.Turns, "turn"), p.CountedIn))
	}
	return "a summary now: " + strings.Join(parts, ", ")
}
