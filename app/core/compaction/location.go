package compaction

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Where says where a message is in the next prompt of its session, and why. It knows every
// message, on any branch. ErrNotFound for others; ErrConflict if the path kept changing
// meanwhile.
func (c *Inspector) Where(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.MessageLocation, error) {
	defer c.acquireView(ctx)()
	for range maxSnapshots {
		v, err := c.loadSnapshot(ctx, tenant, id, core.PlanPreview{})
		if err != nil {
			return core.MessageLocation{}, err
		}
		m, err := c.Stores.Messages.Get(ctx, tenant, id, message)
		if err != nil {
			return core.MessageLocation{}, err
		}
		w, ok := v.locateMessage(m)
		if !ok { // it or its branch was added after the snapshot
			continue
		}
		if w.SummaryVersion > 0 && w.Reason == "" {
			if w.FirstVersion, err = c.Stores.Summaries.FirstCovering(ctx, tenant, id, m.Seq); err != nil {
				return core.MessageLocation{}, fmt.Errorf("find the first version that covers a message: %w", err)
			}
			reason := fmt.Sprintf("Version %d of the summary covers it and replaces it in the prompt", w.SummaryVersion)
			if w.FirstVersion > 0 && w.FirstVersion != w.SummaryVersion {
				reason += fmt.Sprintf("; version %d was the first to cover it", w.FirstVersion)
			}
			if w.PromptTokens > 0 {
				reason += ". It is pinned: the prompt also quotes it"
			}
			w.Reason = reason + "."
		}
		if m.WasRefused() && w.Placement != core.PlaceExcluded {
			w.Reason += " The model's provider refused it: prompts and summaries may be made without it."
		}
		return w, nil
	}
	return core.MessageLocation{}, core.Errorf(core.ErrConflict, "the session kept changing while message %s was located: try again", message)
}

// locateMessage locates the message; false if it should be in the plan and is not.
func (v snapshot) locateMessage(m core.Message) (core.MessageLocation, bool) {
	w := core.MessageLocation{
		MessageID: m.ID, Seq: m.Seq, Role: m.Role, Pinned: m.Pinned, TokenCount: m.TokenCount,
		WholeTokens: v.d.Shown(m.TokenCount), Model: v.turn.Profile.Model.Info().Name,
	}
	if why := exclusionReason(m); why != "" {
		w.Placement, w.Reason = core.PlaceExcluded, why
		return w, true
	}
	if first := firstStep(v.d); v.d.Floor != nil {
		w.Note = "Nothing can be sent at present: " + v.d.Floor.Error() + "."
	} else if m.Seq > v.turn.Session.SummaryThroughSeq && first.covers(m.Seq) {
		w.Note = "T" + first.text[1:] + ", and this message is one of those that it covers."
	}
	if s := v.turn.Session; m.Seq <= s.SummaryThroughSeq {
		w.Placement, w.SummaryVersion = core.PlaceCovered, s.SummaryVersion
		w.PromptTokens = v.promptTokens(m.ID)
		return w, true
	}
	slots := slices.Concat(v.d.History, v.d.Run)
	i := slices.IndexFunc(slots, func(s contextwindow.Slot) bool { return s.ID == m.ID })
	if i < 0 {
		w.Placement, w.Reason = core.PlaceExcluded, "A content filter of the model's provider refused it. It is sent again once it is edited or answered."
		return w, slices.ContainsFunc(v.turn.History, func(h core.Message) bool { return h.ID == m.ID })
	}
	w.Placement, w.PromptTokens, w.SummaryVersion = slots[i].Place, v.promptTokens(m.ID), v.turn.Notes[slots[i].Loop].Version
	w.WholeTokens = v.d.Shown(m.TokenCount + slots[i].Native)
	w.Reason = v.placeReason(slots[i], w)
	return w, true
}

// promptTokens returns the tokens of the message in the prompt, in its place or where it is
// quoted.
func (v snapshot) promptTokens(id core.MessageID) int {
	if i := slices.IndexFunc(v.prompt.Messages, func(m contextwindow.PromptMessage) bool { return m.ID == id }); i >= 0 {
		return v.prompt.Shown(v.d)[i]
	}
	for _, s := range v.d.Pinned {
		if s.ID == id {
			return s.Size
		}
	}
	return 0
}

// exclusionReason says why no prompt of this path has the message; empty = one may have it.
func exclusionReason(m core.Message) string {
	switch {
	case m.DeletedAt != nil:
		return "It was deleted: there is nothing left to send."
	case !m.OnPath:
		return "It is on another branch. Only the current path is sent: select the message to switch to its branch."
	case m.Role == core.RoleSystem:
		return "System rows of the log are never sent: the agent's own system prompt replaces them."
	}
	return ""
}

// placeReason is the reason for a message behind the cursor.
func (v snapshot) placeReason(s contextwindow.Slot, w core.MessageLocation) string {
	switch {
	case s.Place == core.PlaceCovered:
		return fmt.Sprintf("Notes on the older tool calls of its run, version %d of the summaries, replace it in the prompt.", v.turn.Notes[s.Loop].Version)
	case s.Place == core.PlaceMasked:
		return fmt.Sprintf("It is an old tool result: a marker of %d tokens replaces its %d.", w.PromptTokens, w.WholeTokens)
	case s.FilesAsText():
		return fmt.Sprintf("There is no room for the pages of its PDFs: their text is sent in place of the files, with which it would have %[2]d tokens and not %[1]d.", w.PromptTokens, w.WholeTokens)
	case s.Place == core.PlaceShortened:
		return fmt.Sprintf("It is shortened from %d to %d tokens: its beginning and its end are sent, with a marker for what is missing.", w.WholeTokens, w.PromptTokens)
	case s.Place == core.PlaceLeftOut && s.Note:
		return "It does not fit in its place. It is pinned: the prompt quotes it instead."
	case s.Place == core.PlaceLeftOut:
		return "It does not fit and is left out; a marker in the prompt lists such messages."
	case s.Orphan:
		return "It is the result of a tool call that is missing from the conversation: it is sent as text."
	case slices.ContainsFunc(v.d.Run, func(r contextwindow.Slot) bool { return r.ID == s.ID }):
		return "It belongs to the run in progress and is sent verbatim."
	case v.turn.Session.SummaryVersion == 0:
		return "Nothing is summarized yet: it is sent verbatim."
	default:
		return fmt.Sprintf("It comes after the messages that version %d of the summary covers: it is sent verbatim.", v.turn.Session.SummaryVersion)
	}
}
