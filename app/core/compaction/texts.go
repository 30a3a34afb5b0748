package compaction

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// A turn has the texts of its newest messages only. Prompts and summaries load the other
// texts by id, in slices. A slice is in memory until its messages are rendered: a prompt
// shows a few pages of a tool result of four megabytes. All slices of the process share a
// limit, and so does the material of all summaries: many concurrent sessions need no more
// memory than a few.
const (
	sliceBytes   = 4 << 20  // of one slice for a prompt
	slicesBytes  = 32 << 20 // of all slices in this process
	summaryBytes = 64 << 20 // of the material of all summaries in this process
	maxViews     = 16       // concurrent reports for people in this process
)

// acquireView waits until a turn may be loaded for a person's request, which counts until release is
// called. It does not wait longer than ctx, with which nothing can be loaded then.
func (k *Compactor) acquireView(ctx context.Context) (release func()) {
	if k.views.Acquire(ctx, 1) != nil {
		return func() {}
	}
	return func() { k.views.Release(1) }
}

// messagesByID are messages by their ids.
type messagesByID = map[core.MessageID]*core.Message

// eachSlice loads the messages of the slots and calls use for one slice after the other.
func (k *Compactor) eachSlice(ctx context.Context, t Turn, slots []contextwindow.Slot, headers messagesByID, use func([]contextwindow.Slot, messagesByID)) error {
	list := make([]core.Message, len(slots))
	for i, s := range slots {
		list[i] = *headers[s.ID]
	}
	for slice, size := range core.Slices(list, sliceBytes) {
		n := len(slice)
		err := k.loadSlice(ctx, t, slice, size, func(whole messagesByID) { use(slots[:n], whole) })
		if err != nil {
			return err
		}
		slots = slots[n:]
	}
	return nil
}

// loadSlice loads the messages and calls use with them. They count toward the limit until it returns.
func (k *Compactor) loadSlice(ctx context.Context, t Turn, slice []core.Message, size int, use func(messagesByID)) error {
	weight := int64(min(size, slicesBytes))
	if k.slices.Acquire(ctx, weight) != nil {
		return context.Cause(ctx)
	}
	defer k.slices.Release(weight)
	list, err := k.loadTexts(ctx, t, slice)
	if err != nil {
		return err
	}
	whole := make(messagesByID, len(list))
	for _, m := range list {
		if m.Unloaded > 0 {
			// It was deleted since it was planned: the messages around it can be sent as they are.
			m.Unloaded, m.Content, m.Parts, m.Named = 0, "[this message was deleted]", nil, false
			m.ToolCalls = slices.Clone(m.ToolCalls)
			for i := range m.ToolCalls {
				m.ToolCalls[i].Arguments = "{}"
			}
		}
		whole[m.ID] = &m
	}
	use(whole)
	return nil
}

// loadTexts returns the messages with their texts; those that no longer exist unchanged.
func (k *Compactor) loadTexts(ctx context.Context, t Turn, list []core.Message) ([]core.Message, error) {
	at, ids := make(map[core.MessageID]int, len(list)), make([]core.MessageID, len(list))
	for i, m := range list {
		at[m.ID], ids[i] = i, m.ID
	}
	found, err := k.Stores.Messages.GetMessages(ctx, scopeOf(t), t.Session.ID, ids)
	if err != nil {
		return nil, fmt.Errorf("load the texts of %d messages: %w", len(list), err)
	}
	list = slices.Clone(list)
	for _, m := range found {
		list[at[m.ID]] = m
	}
	return list, nil
}

// acquireMaterial waits until the texts that a summary of the messages loads are within the
// limit of the process. They count toward it until release is called.
func (k *Compactor) acquireMaterial(ctx context.Context, messages []core.Message) (release func(), err error) {
	size := 0
	for _, m := range messages {
		size += m.Unloaded
	}
	if size == 0 {
		return func() {}, nil
	}
	weight := int64(min(size, summarize.MaxMaterial))
	if k.materials.Acquire(ctx, weight) != nil {
		return nil, context.Cause(ctx)
	}
	return func() { k.materials.Release(weight) }, nil
}

// withNamedTexts returns the turn with the notes, the passages, the instructions of earlier runs and the
// rendered messages that the prompt of the decision has, as far as it did not have them yet.
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
	unloaded := func(m core.Message) bool { return m.Unloaded > 0 }
	if !slices.ContainsFunc(t.History, unloaded) && !slices.ContainsFunc(t.Run, unloaded) {
		return t, nil
	}
	parts := k.promptParts(t)
	missing, _, rendered := contextwindow.Unloaded(parts, d)
	t.Rendered = rendered
	return t, k.eachSlice(ctx, t, missing, parts.Messages, func(slots []contextwindow.Slot, whole messagesByID) {
		maps.Copy(rendered, contextwindow.Render(parts, slots, whole, k.Counter))
	})
}

// assemble puts the prompt of a decision together, with the pinned messages, the notes
// and the files that it needs from storage.
func (k *Compactor) assemble(ctx context.Context, t Turn, d contextwindow.Decision) (contextwindow.Prompt, error) {
	t, err := k.withNamedTexts(ctx, t, d)
	if err != nil {
		return contextwindow.Prompt{}, err
	}
	parts := k.promptParts(t)
	_, missing, _ := contextwindow.Unloaded(parts, d)
	err = k.eachSlice(ctx, t, missing, parts.Messages, func(_ []contextwindow.Slot, whole messagesByID) {
		maps.Copy(parts.Messages, whole)
	})
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
