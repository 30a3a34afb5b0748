package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// How much of a thread's history is read, and copied: its first message and the newest ones.
const (
	historyPage  = 999 // messages; more than some apps get
	historyPages = 20
	maxHistory   = 200
	historyTries = 2 // while Slack allows no call; then the message goes without the history
)

// copyEarlier appends what was said in the thread before the message and the session lacks: to a new one all of it, to
// another what people wrote since its newest message of the thread and Slack could not deliver, because Bobbin was
// away for too long. If Slack does not show that, the message goes without. It may be repeated.
func (s *workspace) copyEarlier(ctx context.Context, m incoming, session core.SessionID) error {
	q := slackapi.GetConversationRepliesParameters{Latest: m.TS}
	isNew := m.bound.SessionID == ""
	if isNew && m.root() == m.TS {
		return nil
	}
	if !isNew {
		newest, err := s.Inbox.MessageBefore(ctx, session, clientMessageID(m.thread.Team, m.Channel, ""), m.TS)
		if err != nil {
			return err
		}
		q.Oldest = cmp.Or(strings.TrimRight(newest, "+"), m.root())
		if m.writtenAt().Sub((&event{TS: q.Oldest}).writtenAt()) < missedTime && time.Since(m.writtenAt()) < secondTry {
			return nil // Bobbin was not away for so long
		}
	}
	earlier, err := s.readThread(ctx, m, q)
	if err != nil && !isNew {
		s.Logger.WarnContext(ctx, "thread of Slack not searched for messages that were not delivered", "session_id", session, "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	for _, old := range earlier {
		_, _, command := parseCommand(stripMention(old.Text, m.me.UserID))
		if old.TS >= m.TS || !isNew && (old.TS <= q.Oldest || command || !isMessage(old, m.app, m.me.UserID)) {
			continue
		}
		known, err := s.isKnown(ctx, m, session, old.TS)
		if err == nil && !known {
			err = s.copyMessage(ctx, m, session, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isKnown reports whether the session has the message with the ts, or its thread shows it there.
func (s *Service) isKnown(ctx context.Context, m incoming, session core.SessionID, ts string) (bool, error) {
	found, err := s.Inbox.FindMessage(ctx, core.SlackMessageQuery{SessionID: session, ClientMessageID: clientMessageID(m.thread.Team, m.Channel, ts)})
	if err != nil || found.MessageID != "" {
		return true, err
	}
	post, err := s.Posts.PostAt(ctx, m.thread.Team, m.Channel, ts)
	if errors.Is(err, core.ErrNotFound) {
		return false, nil
	}
	return post.SessionID == session, err
}

// copyMessage appends an earlier message of the thread to the session: the bot's own as the assistant's.
func (s *workspace) copyMessage(ctx context.Context, m incoming, session core.SessionID, old event) error {
	text, err := s.readContent(ctx, old)
	if err != nil {
		return err
	}
	for _, f := range old.allFiles() {
		text += "\n[file: " + core.CleanText(core.Clip(f.Name, 200)) + "]"
	}
	message := core.Message{
		Role: core.RoleUser, Content: strings.TrimSpace(text), Source: core.SourceSlack, Author: "Slack",
		ClientMessageID: clientMessageID(m.thread.Team, m.Channel, old.TS),
		Metadata:        slackMetadata(m.thread.Team, event{Channel: m.Channel, TS: old.TS, User: old.User}),
	}
	if message.Content == "" {
		return nil
	}
	if s.isOwn(old) {
		message.Role, message.Author = core.RoleAssistant, ""
	} else if old.author() != "" { // else it says what is missing
		author, err := s.findAuthor(ctx, incoming{event: old, thread: m.thread})
		if err != nil {
			return err
		}
		message.AuthorID, message.Author = author.ID, author.Name
	}
	_, _, err = s.Transfer.Append(ctx, s.tenant(), session, message)
	switch {
	case errors.Is(err, core.ErrTooLarge):
		return nil
	case errors.Is(err, core.ErrConflict): // a run of another surface is at work
		return errRunning
	case err != nil:
		return fmt.Errorf("history of the thread: %w", err)
	}
	return nil
}

// readThread returns messages of the thread that m is in, the oldest first: of more than maxHistory
// the first and the newest ones. A message of nobody says where others are missing.
func (s *workspace) readThread(ctx context.Context, m incoming, q slackapi.GetConversationRepliesParameters) ([]event, error) {
	var all []event
	q.ChannelID, q.Timestamp, q.Limit = m.Channel, m.root(), historyPage
	for range historyPages {
		page, more, next, err := s.api.GetConversationRepliesContext(ctx, &q)
		limited, _ := errors.AsType[*slackapi.RateLimitedError](err)
		switch {
		case isAnswer(err, "missing_scope"):
			s.Logger.WarnContext(ctx, "history of a thread not read: the app lacks a scope", "channel", q.ChannelID)
			return nil, nil
		case isAnswer(err, "thread_not_found"): // deleted meanwhile
			return nil, nil
		case limited != nil && (len(all) > 0 || m.attempt > historyTries):
			s.Logger.WarnContext(ctx, "history of a thread not read to its end: Slack allows no more calls", "channel", q.ChannelID, "messages", len(all))
			return append(all, gapAfter(all, m)), nil
		case err != nil:
			return nil, fmt.Errorf("conversations.replies: %w", err)
		}
		for _, r := range page {
			var ev event
			data, err := json.Marshal(r.Msg)
			if err == nil {
				err = json.Unmarshal(data, &ev)
			}
			if err != nil {
				return nil, fmt.Errorf("message %s of a thread: %w", r.Timestamp, err)
			}
			ev.Type, ev.Channel, ev.ChannelType = eventMessage, m.Channel, m.ChannelType
			all = append(all, ev)
		}
		if n := len(all); n > maxHistory {
			all = slices.Concat(all[:1:1], []event{gapAfter(all[:1], m)}, all[n-maxHistory+1:])
		}
		if q.Cursor = next; !more || next == "" {
			return all, nil
		}
	}
	return append(all, gapAfter(all, m)), nil
}

// gapAfter returns what takes the place of the messages of m's thread that are missing after others.
func gapAfter(messages []event, m incoming) event {
	last := m.root()
	if n := len(messages); n > 0 {
		last = messages[n-1].TS
	}
	return event{Text: "[Messages of this thread are missing here: there are too many, or Slack did not give them.]", TS: last + "+"}
}

// lateTime is the age of a message from which on Slack has delivered later ones before it:
// Bobbin was away, and Slack retries after a minute.
const lateTime = 5 * time.Second

// Slack tries to deliver a message immediately, after a minute and after five.
const (
	missedTime = 4 * time.Minute  // shorter than that
	secondTry  = 45 * time.Second // shorter than until the second time; a process that is only behind needs less
)

// writtenAt returns when the message was written; the zero time if its ts is none.
func (e *event) writtenAt() time.Time {
	written, err := strconv.ParseFloat(e.TS, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(written * 1e6))
}

// sendReplies sends the replies to a message that opened their session late. When Slack delivered
// them, nothing said that they were for the bot. It may be repeated.
func (s *workspace) sendReplies(ctx context.Context, m incoming) error {
	replies, err := s.readThread(ctx, m, slackapi.GetConversationRepliesParameters{Oldest: m.TS})
	if err != nil {
		return err
	}
	for _, r := range replies {
		e := envelope{App: m.app, ID: r.TS, Event: r, Authorizations: []authorization{{Team: m.thread.Team, User: m.me.UserID}}}
		item, ok := s.eventItem(e, nil)
		if !ok || r.TS <= m.TS || item.Kind != core.SlackMessage {
			continue
		}
		item.Gesture = "" // it was handled, and not for the bot
		reply := incoming{event: r, app: m.app, me: m.me, thread: m.thread}
		if _, err := s.handleMessage(ctx, item, reply); err != nil {
			return err
		}
	}
	return nil
}
