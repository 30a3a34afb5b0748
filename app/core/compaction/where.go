package compaction

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Where says where a message is in the next prompt of its session, and why. It
// knows every message, on whatever branch. ErrNotFound for others; ErrConflict if
// the path kept changing while it looked.
func (c *Control) Where(ctx context.Context, scope core.Scope, id core.SessionID, message core.MessageID) (core.MessageWhere, error) {
	for range maxLooks {
		v, err := c.keeper.look(ctx, scope, id)
		if err != nil {
			return core.MessageWhere{}, err
		}
		m, err := c.stores.Messages.Get(ctx, scope, id, message)
		if err != nil {
			return core.MessageWhere{}, err
		}
		w, ok := v.where(m)
		if !ok { // it came, or its branch did, after the look
			continue
		}
		if w.SummaryVersion > 0 && w.Reason == "" {
			if w.FirstVersion, err = c.stores.Summaries.FirstCovering(ctx, scope, id, m.Seq); err != nil {
				return core.MessageWhere{}, fmt.Errorf("first version that covers a message: %w", err)
			}
			w.Reason = coveredReason(w)
		}
		return w, nil
	}
	return core.MessageWhere{}, core.Errorf(core.ErrConflict, "the session kept changing while message %s was looked for: ask again", message)
}

// where places the message; false if it should be in the plan and is not.
func (v looked) where(m core.Message) (core.MessageWhere, bool) {
	w := core.MessageWhere{
		MessageID: m.ID, Seq: m.Seq, Role: m.Role, Pinned: m.Pinned, TokenCount: m.TokenCount,
		WholeTokens: v.d.Shown(m.TokenCount), Model: v.turn.Profile.Model.Info().Name,
	}
	if why := excluded(m); why != "" {
		w.Placement, w.Reason = core.PlaceExcluded, why
		return w, true
	}
	w.Note = v.note(m)
	if s := v.turn.Session; m.Seq <= s.SummaryThroughSeq {
		w.Placement, w.SummaryVersion = core.PlaceCovered, s.SummaryVersion
		w.PromptTokens = v.tokens(m.ID)
		return w, true
	}
	slots := slices.Concat(v.d.History, v.d.Run)
	i := slices.IndexFunc(slots, func(s contextwindow.Slot) bool { return s.ID == m.ID })
	if i < 0 {
		return w, false
	}
	w.Placement, w.PromptTokens, w.SummaryVersion = slots[i].Place, v.tokens(m.ID), v.turn.Notes[slots[i].Loop].Version
	w.Reason = v.reason(slots[i], w)
	if w.Placement == core.PlaceCovered {
		w.SummaryVersion = v.turn.Notes[slots[i].Loop].Version
	}
	return w, true
}

// tokens returns what the prompt spends on the message, in its place or where it is
// quoted.
func (v looked) tokens(id core.MessageID) int {
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

// excluded says why no prompt of this path has the message; empty = one may have it.
func excluded(m core.Message) string {
	switch {
	case m.DeletedAt != nil:
		return "It was deleted: nothing of it is left to be sent."
	case !m.OnPath:
		return "It is on another branch. Only the current path is sent: select the message to go there."
	case m.Role == core.RoleSystem:
		return "System rows of the log are never sent: the agent's own system prompt stands in their place."
	}
	return ""
}

// note says what becomes of the message before the next prompt is sent.
func (v looked) note(m core.Message) string {
	d := v.d
	if d.Summarize != nil {
		if refused, ok := hopeless(v.in); ok {
			d = refused
		}
	}
	switch o := d.Summarize; {
	case d.Floor != nil:
		return "Nothing can be sent at present: " + d.Floor.Error() + "."
	case d.Activate != nil && m.Seq > v.in.Summary.ThroughSeq && m.Seq <= v.in.Prepared.ThroughSeq:
		return fmt.Sprintf("Before the next prompt is sent, version %d of the summary comes into use, which is ready and covers it (%s).", d.Activate.Version, d.Activate.Trigger)
	case o != nil && o.Kind == core.SummaryRun && m.Seq >= o.FromSeq && m.Seq <= o.ThroughSeq:
		return fmt.Sprintf("Before the next model call, notes replace the oldest %d messages of the run's tool calls (%s), and this is one of them.", o.Messages, o.Trigger)
	case o != nil && m.Seq >= o.FromSeq && m.Seq <= o.ThroughSeq:
		return fmt.Sprintf("Before the next prompt is sent, the oldest %d messages are summarized (%s), and this is one of them.", o.Messages, o.Trigger)
	default:
		return ""
	}
}

// coveredReason is the sentence for a message that the summary covers.
func coveredReason(w core.MessageWhere) string {
	reason := fmt.Sprintf("Version %d of the summary covers it, which stands in the prompt in its place", w.SummaryVersion)
	if w.FirstVersion > 0 && w.FirstVersion != w.SummaryVersion {
		reason += fmt.Sprintf("; version %d was the first that did", w.FirstVersion)
	}
	if w.PromptTokens > 0 {
		reason += ". It is pinned: the prompt quotes it besides"
	}
	return reason + "."
}

// reason is the sentence for a message behind the cursor.
func (v looked) reason(s contextwindow.Slot, w core.MessageWhere) string {
	switch {
	case s.Place == core.PlaceCovered:
		return fmt.Sprintf("Notes on the older part of its run's tool calls, version %d of the summaries, stand in the prompt in its place.", v.turn.Notes[s.Loop].Version)
	case s.Place == core.PlaceMasked:
		return fmt.Sprintf("It is an old tool result: a marker of %d tokens stands for its %d.", w.PromptTokens, w.WholeTokens)
	case s.Place == core.PlaceShortened:
		return fmt.Sprintf("It is shortened from %d to %d tokens: its beginning and its end are sent, and between them what is missing is named.", w.WholeTokens, w.PromptTokens)
	case s.Place == core.PlaceLeftOut && s.Note:
		return "It does not fit in its place and is left out there. It is pinned: the prompt quotes it instead."
	case s.Place == core.PlaceLeftOut:
		return "It does not fit and is left out; a marker in the prompt says which messages are."
	case s.Orphan:
		return "It is the result of a tool call that is not in the conversation: it is sent as text."
	case slices.ContainsFunc(v.d.Run, func(r contextwindow.Slot) bool { return r.ID == s.ID }):
		return "It belongs to the run in progress and is sent word for word."
	case v.turn.Session.SummaryVersion == 0:
		return "Nothing is summarized yet: it is sent word for word."
	default:
		return fmt.Sprintf("It comes after what version %d of the summary covers: it is sent word for word.", v.turn.Session.SummaryVersion)
	}
}
