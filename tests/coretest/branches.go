package coretest

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// Branches change the messages of a Store.
type Branches struct {
	core.BranchStore // the methods that no test calls
	s                *Store
}

// Revise replaces the text of a user's message in place.
func (r Branches) Revise(ctx context.Context, tenant core.Tenant, in core.ReviseMessage) (out core.Message, events []core.Event, err error) {
	err = r.s.inSession(ctx, "Revise", tenant, in.SessionID, func(c *Conversation) error {
		busy := conversation.Busy(in.SessionID)
		runs := slices.DeleteFunc(r.s.runsOf(in.SessionID), func(run *core.Run) bool { return run.Status.Ended() })
		i := c.indexOf(in.MessageID)
		switch {
		case i < 0 && slices.ContainsFunc(runs, func(run *core.Run) bool { return run.UserMessageID == in.MessageID }):
			return busy
		case i < 0, c.Messages[i].DeletedAt != nil:
			return core.Errorf(core.ErrNotFound, "message %s does not exist", in.MessageID)
		case c.Messages[i].Role != core.RoleUser:
			return core.Errorf(core.ErrUnprocessable, "message %s is not a user's", in.MessageID)
		case c.Messages[i].Content != in.Content && len(runs) > 0:
			return busy
		case c.Messages[i].Content != in.Content:
			c.replaceText(&c.Messages[i], in)
			c.emit(core.NewEvent(c.Session.ID, "", core.EventSessionUpdated, core.SessionData{Session: r.s.withRuns(c)}))
		}
		out, events = c.withRevisions(c.Messages[i]), c.fresh
		return nil
	})
	return out, events, err
}

// replaceText stores the new text of a message.
func (c *Conversation) replaceText(m *core.Message, in core.ReviseMessage) {
	now := core.Now()
	old := core.Revision{Content: m.Content, TokenCount: m.TokenCount, ReplacedAt: now}
	c.revisions[m.ID] = core.KeptRevisions(append(slices.Clone(c.revisions[m.ID]), old))
	m.Content, m.TokenCount, m.RevisedAt = in.Content, in.TokenCount, &now
	for i, v := range c.Summaries {
		if v.ThroughSeq >= m.Seq && (v.Kind == core.SummaryRolling || m.Seq >= v.FromSeq-1) {
			c.Summaries[i].Content, c.Summaries[i].Native, c.Summaries[i].State = "", nil, core.SummaryErased
		}
	}
	c.fallBack()
	c.emit(core.NewEvent(c.Session.ID, m.RunID, core.EventMessageUpdated, core.MessageData{Message: *m}))
	c.Session.UpdatedAt = now
}

func (c *Conversation) withRevisions(m core.Message) core.Message {
	m.Revisions = c.revisions[m.ID]
	return m
}

// fallBack gives the session the newest version of its summary that is still valid.
func (c *Conversation) fallBack() {
	c.raiseRevision(nil)
	c.Session.PromptState = nil
	valid := slices.DeleteFunc(slices.Clone(c.Summaries), func(v core.Summary) bool {
		return v.Kind != core.SummaryRolling || v.State == core.SummaryErased || v.ActivatedAt == nil || !c.endsOnPath(v)
	})
	if len(valid) == 0 {
		c.clearSummary()
		return
	}
	newest := slices.MaxFunc(valid, func(a, b core.Summary) int { return int(a.ThroughSeq - b.ThroughSeq) })
	if newest.Version != c.Session.SummaryVersion {
		newest.ID = ""
		c.activate(c.addVersion(newest))
	}
	c.resumeLoops()
}
