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

// placeFacts looks where each fact is at the end: in the last prompt that was sent, there
// in its summary, behind the search for its question, or out of reach.
func (r Replayed) placeFacts(ctx context.Context, f *Found) error {
	prompt, summary := r.lastPrompt()
	whole := newText(summary)
	f.Unreachable = []Fact{}
	for _, fact := range r.Facts {
		rank, err := r.rankInSearch(ctx, fact)
		if err != nil {
			return err
		}
		f.countSearch(fact, rank)
		switch {
		case prompt.hasFact(fact):
			f.Prompt++
		case whole.hasFact(fact):
			f.Summary++
		case rank > 0 && rank <= firstHits:
			f.First5++
		case rank > 0:
			f.First20++
		default:
			f.Unreachable = append(f.Unreachable, fact)
		}
	}
	f.Reachable = f.Planted - len(f.Unreachable)
	return nil
}

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

// lastPrompt returns what the messages of the last prompt say, and its summaries: of the
// conversation, and of tool loops.
func (r Replayed) lastPrompt() (prompt *text, summary string) {
	last := r.Player.lastRequest()
	prompt = newText("")
	blocks := slices.Clone(last.System)
	for _, m := range last.Messages {
		blocks = append(blocks, m.Content)
		if !isSummary(m.Content) {
			prompt.addPiece(messageTexts(m.Content, m.ToolCalls))
		}
	}
	return prompt, strings.Join(slices.DeleteFunc(blocks, func(b string) bool { return !isSummary(b) }), "\n") + "\n"
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
