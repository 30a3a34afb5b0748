package eval

import (
	"context"
	"slices"
	"strings"
)

// How far down the search counts. search_history shows an agent fewer than the last at
// once.
const (
	firstHits = 5
	allHits   = 20
)

// countSearch counts what the search alone is good for.
func (f *Found) countSearch(fact Fact, rank int) {
	if fact.Ask == "" {
		return
	}
	f.Asked++
	if rank > 0 {
		f.SearchAlone.First20++
	}
	if rank > 0 && rank <= firstHits {
		f.SearchAlone.First5++
	}
}

// isSummary reports whether the block of a prompt stands for messages that are not in it.
func isSummary(block string) bool {
	return strings.Contains(block, "<conversation_summary>") || strings.Contains(block, "<work_notes>")
}

// rankInSearch returns the place among the quotations that the search for the fact's question
// gives of the first one that tells the fact; 0 = none does, or the fact has no question.
func (r Replayed) rankInSearch(ctx context.Context, f Fact) (int, error) {
	if f.Ask == "" {
		return 0, nil
	}
	quotes, able, err := r.Bobbin.Search(ctx, f.Ask, allHits)
	if err != nil || !able {
		return 0, err
	}
	return 1 + slices.IndexFunc(quotes, func(q string) bool {
		return newText(messageTexts(q, nil)).hasFact(f)
	}), nil
}
