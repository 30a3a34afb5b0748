package slack

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// runWait is how often a change looks whether the session's runs have ended.
const runWait = 2 * time.Second

// handleChange brings an edit or a deletion into the session. It waits until the message is
// there, and while the session has a run.
func (s *workspace) handleChange(ctx context.Context, item core.SlackItem, m incoming) (core.SlackItem, error) {
	ts, thread := m.DeletedTS, ""
	if m.Previous != nil {
		thread = m.Previous.root()
	}
	if m.Subtype == subtypeChanged {
		ts, thread = m.Message.TS, m.Message.root()
	}
	if thread == "" {
		thread = ts
	}
	team := m.thread.Team
	var err error
	if m.bound, err = s.findThread(ctx, team, m.Channel, thread); err != nil {
		return item, err
	}
	q := core.SlackMessageQuery{App: item.App, Key: messageKey(m.Channel, ts), SessionID: m.bound.SessionID, ClientMessageID: clientMessageID(team, m.Channel, ts)}
	found, err := s.Inbox.FindMessage(ctx, q)
	switch {
	case err != nil:
		return item, err
	case found.Pending:
		return s.holdChange(ctx, item, m)
	case found.MessageID == "":
		return item, nil // it never came here
	}
	item.SessionID = m.bound.SessionID
	if m.Subtype == subtypeChanged && m.Message.Subtype != subtypeTombstone {
		err = s.reviseMessage(ctx, found.MessageID, m)
	} else {
		err = s.Chat.DeleteMessage(ctx, s.tenant(), m.bound.SessionID, found.MessageID)
	}
	if errors.Is(err, core.ErrConflict) {
		return s.holdChange(ctx, item, m)
	}
	return item, err
}

// holdChange lets a change wait. Its item gets the session and the author's id in Bobbin, by which
// purges find it; if Slack does not say who that is, it keeps the id in Slack.
func (s *workspace) holdChange(ctx context.Context, item core.SlackItem, m incoming) (core.SlackItem, error) {
	item.SessionID = m.bound.SessionID
	author := m.changed()
	if author.User != "" && s.Settings.LinkByEmail {
		if who, err := s.findPerson(ctx, userTeam(*author, m.thread.Team), author.User); err == nil {
			item.User = who.ID
		}
	}
	return item, waitError{runWait}
}

// reviseMessage brings an edit into the session. Its author is told if it is not accepted.
func (s *workspace) reviseMessage(ctx context.Context, id core.MessageID, m incoming) error {
	if !m.bound.Mode.Reads() {
		return nil
	}
	edited := *m.Message
	edited.Channel, edited.ChannelType = m.Channel, m.ChannelType
	content, err := s.readContent(ctx, edited)
	if err != nil {
		return err
	}
	_, err = s.Chat.Revise(ctx, s.tenant(), m.bound.SessionID, id, content)
	switch {
	case errors.Is(err, core.ErrNotFound): // deleted meanwhile, or canceled before its turn
		return nil
	case isFinal(err) && !errors.Is(err, core.ErrConflict):
		s.tellPerson(ctx, edited, publicMessage(err))
		return nil
	}
	return err
}
