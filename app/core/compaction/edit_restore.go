package compaction

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff/lcs"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/redact"
)

// Edit replaces the text of the active summary with a new version that has the same cursor,
// and returns it. The same text changes nothing.
//
// Errors: ErrUnprocessable when there is no summary, ErrInvalid for a text that is empty or
// longer than a summary may be, ErrConflict when the edited version is not the active one,
// ErrNotFound.
func (c *Inspector) Edit(ctx context.Context, tenant core.Tenant, id core.SessionID, edit core.SummaryEdit) (core.Summary, error) {
	defer c.acquireView(ctx)()
	t, in, err := c.loadInput(ctx, tenant, id)
	if err != nil {
		return core.Summary{}, err
	}
	session, state := t.Session, in.State
	switch {
	case session.SummaryVersion == 0:
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is no summary to edit: create one first (summarize)")
	case edit.Version != 0 && edit.Version != session.SummaryVersion:
		return core.Summary{}, core.Errorf(core.ErrConflict, "version %d is no longer in use, version %d is: read and edit that one", edit.Version, session.SummaryVersion)
	}
	active, err := c.Stores.Summaries.Get(ctx, tenant, id, session.SummaryVersion)
	if err != nil {
		return core.Summary{}, fmt.Errorf("load the version in use: %w", err)
	}
	content := strings.TrimSpace(redact.Text(core.CleanText(edit.Content)))
	if content == active.Content {
		return active, nil
	}
	s := active
	tokens := c.Counter.Text(content)
	s.Note = fmt.Sprintf("edited from version %d", s.Version)
	s.ID, s.Version, s.State, s.CreatedAt = core.NewID[core.SummaryID](), 0, core.SummaryActive, core.Now()
	s.Content, s.TokensBefore, s.TokensAfter, s.TokenCount = content, s.TokenCount, tokens, tokens
	s.Model, s.Strategy, s.Trigger, s.Focus, s.MessagesAdded, s.MadeFor, s.Duration = "", core.StrategyEdited, core.TriggerManualEdit, "", 0, 0, 0
	detail := ""
	if room := contextwindow.SummaryRoom(in); content == "" {
		detail = "is empty; to remove the summary, restore version 0"
	} else if tokens > room {
		detail = fmt.Sprintf("has %d tokens, but the policy and the model leave %d for a summary: shorten it", tokens, room)
	}
	if detail != "" {
		return core.Summary{}, &core.Error{Kind: core.ErrInvalid, Message: "content " + detail, Fields: []core.FieldError{{Field: "content", Detail: detail}}}
	}
	state.SummaryCut = 0 // of the old text
	after, err := c.planInput(t.withSummary(s, state))
	if err != nil {
		return core.Summary{}, err
	}
	change := core.ContextChange{PromptState: state.Encode(), Summary: &s, Events: []core.Event{
		core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{
			Kind: s.Kind, TokensBefore: contextwindow.PlanAsIs(in).Total, TokensAfter: contextwindow.PlanAsIs(after).Total, MessagesCovered: s.MessagesCovered, Trigger: s.Trigger, Reason: s.Note,
		}),
	}}
	if err := c.applyChange(ctx, &t, change); err != nil {
		return core.Summary{}, changedMeanwhile(err)
	}
	return c.Stores.Summaries.Get(ctx, tenant, id, t.Session.SummaryVersion)
}

// changedMeanwhile says what to do after a lost compare-and-set.
func changedMeanwhile(err error) error {
	if errors.Is(err, core.ErrStale) {
		return core.Errorf(core.ErrConflict, "the session's context changed meanwhile: check its newest summary and retry if necessary")
	}
	return err
}

// Restore makes an earlier version of the summary the active one, with its cursor, so that
// the messages behind that are sent verbatim again; version 0 is no summary. It returns the
// session. Restoring the version in use changes nothing.
//
// Errors: ErrUnprocessable for versions that cannot be restored, ErrConflict when the run in
// progress answers a message that the version covers or when another change was first,
// ErrNotFound.
func (c *Inspector) Restore(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Session, error) {
	if _, committed, err := core.CommittedResult(ctx); err != nil {
		return core.Session{}, err
	} else if committed { // by an earlier execution of the request
		return c.Stores.Sessions.Get(ctx, tenant, id)
	}
	defer c.acquireView(ctx)()
	t, before, err := c.loadInput(ctx, tenant, id)
	if err != nil || t.Session.SummaryVersion == version {
		return t.Session, err
	}
	var to core.Summary
	if version != 0 {
		if to, err = c.Stores.Summaries.Restorable(ctx, tenant, id, version); err != nil {
			return core.Session{}, err
		}
	}
	if run := t.Run; len(run) > 0 && to.ThroughSeq >= run[0].Seq {
		return core.Session{}, core.Errorf(core.ErrConflict, "the run in progress answers message #%d, which version %d covers: wait until it ends", run[0].Seq, version)
	}
	expect := t.Session.PromptRevision
	if t, err = c.withEarlierVersion(ctx, t, to); err != nil {
		return core.Session{}, err
	}
	in, err := c.planInput(t)
	if err != nil {
		return core.Session{}, err
	}
	state := contextwindow.Resumed(in)
	reason := fmt.Sprintf("repeats version %d", version)
	if version == 0 {
		reason = "nothing is summarized any more"
	}
	session, events, err := c.Stores.Sessions.RestoreSummary(ctx, tenant, core.SummaryRestore{
		SessionID: id, Expect: expect, Version: version, PromptState: state.Encode(),
		Events: []core.Event{core.NewEvent(id, "", core.EventContextCompleted, core.ContextData{
			Kind: core.SummaryRolling, TokensBefore: contextwindow.PlanAsIs(before).Total, TokensAfter: state.Landed.Tokens, MessagesCovered: to.MessagesCovered,
			Trigger: core.TriggerRestore, Reason: reason,
		})},
	})
	if err != nil {
		return core.Session{}, changedMeanwhile(err)
	}
	c.Publisher.Publish(context.WithoutCancel(ctx), events)
	c.Logger.InfoContext(ctx, "summary restored", "session_id", id, "restored", version, "version", session.SummaryVersion)
	return session, nil
}

// withSummary returns the turn with another summary and state; the zero summary is none.
func (t Turn) withSummary(s core.Summary, state contextwindow.PromptState) Turn {
	session := &t.Session
	t.Work.Prepared = core.SummaryVersion{} // it extends the version that was in use
	session.ConversationSummary, session.NativeSummary, session.SummaryThroughID, session.SummaryThroughSeq = nil, s.Native, nil, s.ThroughSeq
	session.SummaryVersion, session.SummaryTokens, session.SummarizedCount = s.Version, s.TokenCount, s.MessagesCovered
	session.SummaryCovered, session.SummaryMadeFor = s.TokensCovered, s.MadeFor
	if s.ThroughSeq > 0 {
		session.ConversationSummary, session.SummaryThroughID = &s.Content, &s.ThroughID
		session.SummaryVersion = max(s.Version, 1) // it gets its number when stored
	}
	session.PromptState = state.Encode()
	return t
}

// Diff compares a version of the summary with another one; against 0 is the empty text,
// below 0 the version before. Errors: ErrNotFound; ErrUnprocessable for a version whose text
// was erased.
func (c *Inspector) Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error) {
	after, err := c.loadReadable(ctx, tenant, id, version)
	if err != nil {
		return core.SummaryDiff{}, err
	}
	var before core.Summary
	switch {
	case against > 0:
		before, err = c.loadReadable(ctx, tenant, id, against)
	case against < 0:
		before, err = c.Stores.Summaries.Before(ctx, tenant, id, version)
		if errors.Is(err, core.ErrNotFound) { // the first one
			before, err = core.Summary{}, nil
		}
	}
	if err != nil {
		return core.SummaryDiff{}, err
	}
	a, b := piece.FindAllString(before.Content, -1), piece.FindAllString(after.Content, -1)
	a, b = splitLine(a, b), splitLine(b, a)
	d := core.SummaryDiff{Ops: []core.DiffOp{}}
	add := func(op string, pieces []string) {
		if len(pieces) > 0 {
			d.Ops = append(d.Ops, core.DiffOp{Op: op, Pieces: pieces})
		}
	}
	at := 0
	for _, e := range lcs.DiffLines(a, b) {
		add(core.DiffEqual, a[at:e.Start])
		add(core.DiffRemoved, a[e.Start:e.End])
		add(core.DiffAdded, b[e.ReplStart:e.ReplEnd])
		d.Equal, d.Removed, d.Added, at = d.Equal+e.Start-at, d.Removed+e.End-e.Start, d.Added+e.ReplEnd-e.ReplStart, e.End
	}
	add(core.DiffEqual, a[at:])
	d.Equal += len(a) - at
	d.Version, d.Against = version, before.Version
	return d, nil
}

// loadReadable returns a version that still has its text.
func (c *Inspector) loadReadable(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	s, err := c.Stores.Summaries.Get(ctx, tenant, id, version)
	if err == nil && s.State == core.SummaryErased {
		err = core.Errorf(core.ErrUnprocessable, "version %d is gone: a message that it covered was deleted or edited", version)
	}
	return s, err
}

// splitLine splits the line that is the last one of the other text, where no line break follows it.
func splitLine(pieces, other []string) []string {
	i := slices.IndexFunc(pieces, func(p string) bool { return len(other) > 0 && p == other[len(other)-1]+"\n" })
	if i < 0 {
		return pieces
	}
	return slices.Concat(pieces[:i], []string{other[len(other)-1], "\n"}, pieces[i+1:])
}

// piece is a line, or a sentence and the space behind it.
var piece = regexp.MustCompile(`\n|[^\n]+?(?:\n|[.!?…]["')\]]*[ \t]+|[。！？]+|$)`)
