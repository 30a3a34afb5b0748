package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/redact"
)

// Edit replaces the words of the active summary: a new version with the same cursor,
// which it returns. The same words again change nothing.
//
// Errors: ErrUnprocessable when there is no summary, ErrInvalid for a text that is
// empty or longer than a summary may be, ErrConflict when the version that was edited
// is not the active one, ErrNotFound.
func (c *Control) Edit(ctx context.Context, scope core.Scope, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	k := c.keeper
	v, err := k.look(ctx, scope, id)
	if err != nil {
		return core.Summary{}, err
	}
	session := v.turn.Session
	switch {
	case session.SummaryVersion == 0:
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is no summary that could be edited: make one first (summarize)")
	case edit.Version != 0 && edit.Version != session.SummaryVersion:
		return core.Summary{}, core.Errorf(core.ErrConflict, "version %d is not in use any more, version %d is: read it and edit that one", edit.Version, session.SummaryVersion)
	}
	active, err := c.stores.Summaries.Get(ctx, scope, id, session.SummaryVersion)
	if err != nil {
		return core.Summary{}, fmt.Errorf("the version in use: %w", err)
	}
	content := written(edit.Content)
	if content == active.Content {
		return active, nil
	}
	s := edited(active, content, k.Counter.Text(content))
	if err := fitting(s, contextwindow.SummaryRoom(v.in)); err != nil {
		return core.Summary{}, err
	}
	state := v.in.State.Edited()
	after, err := k.lookAt(ctx, v.turn.with(s, state))
	if err != nil {
		return core.Summary{}, err
	}
	change := core.ContextChange{PromptState: state.Encode(), Summary: &s, Events: []core.Event{
		core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{
			Kind: s.Kind, TokensBefore: v.used(), TokensAfter: after.used(), MessagesCovered: s.MessagesCovered, Trigger: s.Trigger, Reason: s.Note,
		}),
	}}
	if err := k.apply(ctx, &v.turn, change); err != nil {
		return core.Summary{}, changedMeanwhile(err)
	}
	return c.stores.Summaries.Get(ctx, scope, id, v.turn.Session.SummaryVersion)
}

// written returns what a user wrote as it becomes a summary: every text of a summary
// that no summarizer made comes through here, and secrets do not.
func written(content string) string { return strings.TrimSpace(redact.Text(core.CleanText(content))) }

// edited returns the version with other words.
func edited(s core.Summary, content string, tokens int) core.Summary {
	s.Note = fmt.Sprintf("edited from version %d", s.Version)
	s.ID, s.Version, s.State, s.CreatedAt = core.NewID[core.SummaryID](), 0, core.SummaryActive, core.Now()
	s.Content, s.TokensBefore, s.TokensAfter, s.TokenCount = content, s.TokenCount, tokens, tokens
	s.Model, s.Strategy, s.Trigger, s.Focus, s.MessagesAdded, s.Duration = "", core.StrategyEdited, core.TriggerManualEdit, "", 0, 0
	return s
}

// fitting returns ErrInvalid for a summary without words, or with more than the room
// that prompts have for it.
func fitting(s core.Summary, room int) error {
	detail := ""
	switch {
	case s.Content == "":
		detail = "is empty; to go back to no summary at all, restore version 0"
	case s.TokenCount > room:
		detail = fmt.Sprintf("has %d tokens, and the policy and the model leave %d for a summary: shorten it", s.TokenCount, room)
	default:
		return nil
	}
	return &core.Error{Kind: core.ErrInvalid, Message: "content " + detail, Fields: []core.FieldError{{Field: "content", Detail: detail}}}
}

// changedMeanwhile says what to do after a lost compare-and-set.
func changedMeanwhile(err error) error {
	if errors.Is(err, core.ErrStale) {
		return core.Errorf(core.ErrConflict, "the session's context changed meanwhile: look at its newest summary and try again if you still want to")
	}
	return err
}

// Restore makes an earlier version of the summary the active one, its cursor
// included, so that the messages behind it are sent word for word again; version 0
// is no summary at all. It returns the session. The version in use changes nothing.
//
// Errors: ErrUnprocessable for versions that cannot come back, ErrConflict when the
// run in progress answers a message that the version covers or when another change
// came first, ErrNotFound.
func (c *Control) Restore(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Session, error) {
	k := c.keeper
	v, err := k.look(ctx, scope, id)
	if err != nil || v.turn.Session.SummaryVersion == version {
		return v.turn.Session, err
	}
	var to core.Summary
	if version != 0 {
		if to, err = c.stores.Summaries.Restorable(ctx, scope, id, version); err != nil {
			return core.Session{}, err
		}
	}
	if run := v.turn.Run; len(run) > 0 && to.ThroughSeq >= run[0].Seq {
		return core.Session{}, core.Errorf(core.ErrConflict, "the run in progress answers message #%d, which version %d covers: wait for its end", run[0].Seq, version)
	}
	after, err := c.resumed(ctx, scope, v.turn, to)
	if err != nil {
		return core.Session{}, err
	}
	session, events, err := c.stores.Sessions.RestoreSummary(ctx, scope, core.SummaryRestore{
		SessionID: id, Expect: v.turn.Session.PromptRevision, Version: version, PromptState: after.in.State.Encode(),
		Events: []core.Event{core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{
			Kind: core.SummaryRolling, TokensBefore: v.used(), TokensAfter: after.used(), MessagesCovered: to.MessagesCovered,
			Trigger: core.TriggerRestore, Reason: restoredReason(version),
		})},
	})
	if err != nil {
		return core.Session{}, changedMeanwhile(err)
	}
	k.Publisher.Publish(context.WithoutCancel(ctx), events)
	k.Logger.InfoContext(ctx, "summary restored", "session_id", id, "restored", version, "version", session.SummaryVersion)
	return session, nil
}

func restoredReason(version int) string {
	if version == 0 {
		return "nothing is summarized any more"
	}
	return fmt.Sprintf("repeats version %d", version)
}

// resumed looks at the turn with the summary as it was; the zero one is none. Notes on
// tool loops that the cursor had passed are in use again.
func (c *Control) resumed(ctx context.Context, scope core.Scope, t Turn, to core.Summary) (looked, error) {
	loops, err := c.stores.Summaries.Loops(ctx, scope, t.Session.ID, to.ThroughSeq)
	if err != nil {
		return looked{}, fmt.Errorf("notes on tool loops: %w", err)
	}
	messages, err := c.keeper.Stores.Messages.GetMessagesAfter(ctx, scope, t.Session.ID, to.ThroughID)
	if err != nil {
		return looked{}, fmt.Errorf("load the messages behind the cursor: %w", err)
	}
	state := contextwindow.PromptState{}
	for _, n := range loops {
		state.Loops = append(state.Loops, contextwindow.LoopRange{ID: n.ID, From: n.FromSeq, Through: n.ThroughSeq, Tokens: n.TokenCount})
	}
	t = t.with(to, state).noting(loops...)
	t.History = BeforeRun(messages, t.Run)
	in, err := c.keeper.input(ctx, t)
	if err != nil {
		return looked{}, err
	}
	return c.keeper.lookAt(ctx, t.with(to, contextwindow.Resumed(in)))
}

// with returns the turn with another summary and state; the zero summary is none.
func (t Turn) with(s core.Summary, state contextwindow.PromptState) Turn {
	session := &t.Session
	t.Work.Prepared = core.PreparedSummary{} // it extends the one that was in use
	session.ConversationSummary, session.SummaryThroughID, session.SummaryThroughSeq = nil, nil, s.ThroughSeq
	session.SummaryVersion, session.SummaryTokens, session.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	if s.ThroughSeq > 0 {
		session.ConversationSummary, session.SummaryThroughID = &s.Content, &s.ThroughID
		session.SummaryVersion = max(s.Version, 1) // it gets its number when it is stored
	}
	session.PromptState = state.Encode()
	return t
}
