package compaction

import (
	"context"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// withNamedTexts returns the turn with the notes, the passages and the instructions of earlier runs that
// the prompt of the decision has.
func (k *Compactor) withNamedTexts(ctx context.Context, t Turn, d contextwindow.Decision) (Turn, error) {
	var err error
	if t.Notes, err = k.loadNotes(ctx, t, d.Loops); err == nil {
		t.Quotes, err = k.loadQuotes(ctx, t, d)
	}
	if err == nil {
		t.RunInstructions, err = k.loadRunInstructions(ctx, t, d)
	}
	return t, err
}

// assemble puts the prompt of a decision together, with the pinned messages, the notes
// and the files that it needs from storage.
func (k *Compactor) assemble(ctx context.Context, t Turn, d contextwindow.Decision) (contextwindow.Prompt, error) {
	t, err := k.withNamedTexts(ctx, t, d)
	var pinned []core.Message
	if err == nil && len(d.Pinned) > 0 {
		pinned, err = k.loadPinned(ctx, t)
	}
	if err != nil {
		return contextwindow.Prompt{}, err
	}
	parts := k.promptParts(t, pinned)
	if d.Total <= d.Budget.Usable { // else people look at it, and it is not sent
		if parts.Rendered, err = k.renderUnloaded(ctx, t, parts, d); err == nil {
			err = k.loadWhole(ctx, t, parts, d)
		}
		if err != nil {
			return contextwindow.Prompt{}, err
		}
	}
	if err := k.loadFiles(ctx, t, &parts, d); err != nil {
		return contextwindow.Prompt{}, fmt.Errorf("load files: %w", err)
	}
	return contextwindow.Assemble(parts, d, k.Counter), nil
}

// loadFiles loads what the prompt of a decision has of images and files.
func (k *Compactor) loadFiles(ctx context.Context, t Turn, parts *contextwindow.Parts, d contextwindow.Decision) (err error) {
	contents, texts := contextwindow.Attached(*parts, d)
	if k.Stores.Blobs == nil {
		return nil
	}
	if len(contents) > 0 {
		if parts.Blobs, err = k.Stores.Blobs.Contents(ctx, scopeOf(t), contents); err != nil {
			return err
		}
	}
	if len(texts) > 0 {
		parts.Documents, err = k.Stores.Blobs.Texts(ctx, scopeOf(t), texts)
	}
	return err
}
