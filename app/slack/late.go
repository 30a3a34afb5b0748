package slack

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// lateTime is the age of a message from which on Slack has delivered later ones before it:
// Bobbin was away, and Slack retries after a minute.
const lateTime = 5 * time.Second

// missedTime is longer than Slack tries to deliver a message: immediately, after a minute and after
// five.
const missedTime = 6 * time.Minute

// writtenAt returns when the message was written; the zero time if its ts is none.
func (e *event) writtenAt() time.Time {
	written, err := strconv.ParseFloat(e.TS, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(int64(written * 1e6))
}

// isLate reports whether Slack delivered the message late.
func (m incoming) isLate() bool { return time.Since(m.writtenAt()) > lateTime }

// copyMissed appends what people wrote in the thread since the session's last activity and Slack could
// not deliver: Bobbin was away for too long. If Slack does not show it, the message goes without.
func (s *workspace) copyMissed(ctx context.Context, m incoming, session core.Session) error {
	if m.writtenAt().Sub(session.UpdatedAt) < missedTime {
		return nil
	}
	since := fmt.Sprintf("%d.%06d", session.UpdatedAt.Unix(), session.UpdatedAt.Nanosecond()/1000)
	missed, err := s.readThread(ctx, m, slackapi.GetConversationRepliesParameters{Oldest: since, Latest: m.TS})
	if err != nil {
		s.Logger.WarnContext(ctx, "thread of Slack not searched for messages that were not delivered", "session_id", session.ID, "err", err)
		return nil
	}
	return s.copyMessages(ctx, m, session.ID, slices.DeleteFunc(missed, func(ev event) bool {
		_, _, command := parseCommand(stripMention(ev.Text, m.me.UserID))
		return ev.TS <= since || command || !isMessage(ev, m.app, m.me.UserID)
	}))
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
		item, ok := s.intake.eventItem(e, nil)
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
