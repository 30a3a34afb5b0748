package compaction

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// loadRunInstructions returns the instructions of earlier runs that the prompt of the decision
// repeats, and loads those that the turn does not have yet. It omits those of runs that no longer
// exist.
func (k *Compactor) loadRunInstructions(ctx context.Context, t Turn, d contextwindow.Decision) (map[core.RunID]string, error) {
	texts := t.RunInstructions
	for _, s := range d.History {
		id := s.Repeated.Run
		if _, known := texts[id]; known || s.Repeated.Tokens == 0 {
			continue
		}
		run, err := k.Stores.Runs.Get(ctx, scopeOf(t), id)
		if errors.Is(err, core.ErrNotFound) || err == nil && run.SessionID != t.Session.ID {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("load the instructions of run %s: %w", id, err)
		}
		if texts = maps.Clone(texts); texts == nil {
			texts = map[core.RunID]string{}
		}
		texts[id] = ""
		if run.Options != nil {
			texts[id] = run.Options.Instructions
		}
	}
	return texts, nil
}
