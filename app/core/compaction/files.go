package compaction

import (
	"context"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// blobStore has the content of images and files.
type blobStore interface {
	// Contents returns what is there of the blobs.
	Contents(ctx context.Context, scope core.Scope, ids []core.BlobID) (map[core.BlobID][]byte, error)
}

// assemble puts the prompt of a decision together, with the pinned messages, the notes
// and the files that it needs from storage.
func (k *Keeper) assemble(ctx context.Context, t Turn, d contextwindow.Decision) (contextwindow.Prompt, error) {
	var pinned []core.Message
	if len(d.Pinned) > 0 {
		var err error
		if pinned, err = k.pinned(ctx, t); err != nil {
			return contextwindow.Prompt{}, err
		}
	}
	parts := k.parts(t, pinned)
	notes, err := k.notes(ctx, t, d.Loops)
	if err != nil {
		return contextwindow.Prompt{}, err
	}
	parts.Loops = texts(notes)
	if ids := contextwindow.Attached(parts, d); len(ids) > 0 && k.Stores.Blobs != nil {
		var err error
		if parts.Blobs, err = k.Stores.Blobs.Contents(ctx, scopeOf(t), ids); err != nil {
			return contextwindow.Prompt{}, fmt.Errorf("load files: %w", err)
		}
	}
	return contextwindow.Assemble(parts, d, k.Counter), nil
}
