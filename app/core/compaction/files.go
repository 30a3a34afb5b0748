package compaction

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// withNamedTexts returns the turn with the notes, the passages and the instructions of earlier runs that
// the prompt of the decision has, as far as it did not have them yet.
func (k *Compactor) withNamedTexts(ctx context.Context, t Turn, d contextwindow.Decision) (Turn, error) {
	var err error
	if t.Notes, err = k.loadNotes(ctx, t, d.Loops); err == nil {
		t.Quotes, err = k.loadQuotes(ctx, t, d)
	}
	if err != nil {
		return t, err
	}
	for _, s := range d.History {
		id := s.Repeated.Run
		if _, known := t.RunInstructions[id]; known || s.Repeated.Tokens == 0 {
			continue
		}
		run, err := k.Stores.Runs.Get(ctx, scopeOf(t), id)
		if errors.Is(err, core.ErrNotFound) || err == nil && run.SessionID != t.Session.ID {
			continue // it no longer exists
		}
		if err != nil {
			return t, fmt.Errorf("load the instructions of run %s: %w", id, err)
		}
		texts := map[core.RunID]string{id: ""}
		maps.Copy(texts, t.RunInstructions)
		if run.Options != nil {
			texts[id] = run.Options.Instructions
		}
		t.RunInstructions = texts
	}
	return t, nil
}

// assemble puts the prompt of a decision together, with the pinned messages, the notes
// and the files that it needs from storage.
func (k *Compactor) assemble(ctx context.Context, t Turn, d contextwindow.Decision) (contextwindow.Prompt, error) {
	t, err := k.withNamedTexts(ctx, t, d)
	if err != nil {
		return contextwindow.Prompt{}, err
	}
	parts := k.promptParts(t)
	if parts.Rendered, err = k.renderUnloaded(ctx, t, parts, d); err == nil {
		_, missing, _ := contextwindow.Unloaded(parts, d)
		err = k.eachSlice(ctx, t, missing, parts.Messages, func(_ []contextwindow.Slot, whole messagesByID) {
			maps.Copy(parts.Messages, whole)
		})
	}
	if err != nil {
		return contextwindow.Prompt{}, err
	}
	contents, texts := contextwindow.Attached(parts, d)
	if k.Stores.Blobs != nil && len(contents) > 0 {
		parts.Blobs, err = k.Stores.Blobs.Contents(ctx, scopeOf(t), contents)
	}
	if k.Stores.Blobs != nil && len(texts) > 0 && err == nil {
		parts.Documents, err = k.Stores.Blobs.Texts(ctx, scopeOf(t), texts)
	}
	if err != nil {
		return contextwindow.Prompt{}, fmt.Errorf("load files: %w", err)
	}
	return contextwindow.Assemble(parts, d, k.Counter), nil
}
