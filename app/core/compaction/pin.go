package compaction

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// CheckPin returns ErrContextFloor if the session's prompts would have no room left
// with the message pinned: what cannot be shrunk, which is the system prompt, the
// tools and all pinned messages, must stay at or under the point that a compaction
// brings a prompt to. It changes nothing.
func (k *Keeper) CheckPin(ctx context.Context, scope core.Scope, id core.SessionID, m core.Message) error {
	t, err := k.turn(ctx, scope, id)
	if err != nil {
		return err
	}
	in, err := k.input(ctx, t)
	if err != nil {
		return err
	}
	pinned, err := k.Stores.Messages.Pinned(ctx, scope, id)
	if err != nil {
		return err
	}
	m.Pinned = true
	list := []contextwindow.Item{contextwindow.ItemOf(m)}
	for _, p := range pinned {
		if p.ID != m.ID {
			list = append(list, contextwindow.ItemOf(p))
		}
	}
	floor, room := contextwindow.PinnedFloor(in, list)
	if floor <= room {
		return nil
	}
	e := core.Errorf(core.ErrContextFloor, "with this message pinned %d tokens could not be shrunk any more (system prompt, tools and %d pinned messages), "+
		"and %s leaves room for %d: unpin another message, or use a model with a larger window", floor, len(list), t.Profile.Model.Info().Name, room)
	e.Code = "context_floor"
	return e
}
