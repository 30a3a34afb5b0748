package compaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// compactLoop carries out an order for the run's tool loop, commits the notes, and plans
// again. If there can be no notes the run continues as it is: the only errors are a done ctx
// and a lost compare-and-set.
func (k *Compactor) compactLoop(ctx context.Context, t Turn, p plan, e *progress) (Turn, plan, error) {
	m := draft{order: *p.d.Summarize, writer: k.chooseNotesWriter(ctx, t)}
	m.order.SummaryID = core.NewID[core.SummaryID]()
	m, err := k.makeSummary(ctx, t, p, m)
	if err == nil {
		noted, next, failed := k.commitDraft(ctx, t, p, m, e)
		if failed == nil || errors.Is(failed, core.ErrStale) {
			return noted.withNotes(m.summary), next, failed
		}
		err = failed
	}
	m.err = err
	return k.continueWithout(ctx, t, p, m, e)
}

// earlierNotes returns the notes that the order extends; the zero summary if there are none,
// or if their text was erased: then all messages are read again.
func (k *Compactor) earlierNotes(ctx context.Context, t Turn, p plan, o contextwindow.Order) (core.Summary, error) {
	for _, r := range p.state.Loops {
		if r.From < o.FromSeq || r.Through > o.ThroughSeq {
			continue
		}
		notes, err := k.loadNotes(ctx, t, []contextwindow.LoopRange{r})
		if earlier := notes[r.ID]; err != nil || earlier.Content != "" {
			return earlier, err
		}
	}
	return core.Summary{}, nil
}

// withNotes returns the turn with known notes, so that they are not loaded.
func (t Turn) withNotes(s ...core.Summary) Turn {
	notes := make(map[core.SummaryID]core.Summary, len(t.Notes)+len(s))
	maps.Copy(notes, t.Notes)
	for _, n := range s {
		notes[n.ID] = n
	}
	t.Notes = notes
	return t
}

// loadNotes returns the notes of the ranges and loads those that the turn does not know yet.
// Without missing notes it does not access storage.
func (k *Compactor) loadNotes(ctx context.Context, t Turn, ranges []contextwindow.LoopRange) (map[core.SummaryID]core.Summary, error) {
	var missing []core.SummaryID
	for _, r := range ranges {
		if _, known := t.Notes[r.ID]; !known && !slices.Contains(missing, r.ID) {
			missing = append(missing, r.ID)
		}
	}
	if len(missing) == 0 {
		return t.Notes, nil
	}
	found, err := k.Stores.Summaries.Find(ctx, scopeOf(t), t.Session.ID, missing)
	if err != nil {
		return nil, fmt.Errorf("load notes: %w", err)
	}
	return t.withNotes(found...).Notes, nil
}
