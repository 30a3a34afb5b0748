package slack

import (
	"context"
	"encoding/json"
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

// isLate reports whether Slack delivered the message late.
func (m incoming) isLate() bool {
	written, err := strconv.ParseFloat(m.TS, 64)
	return err == nil && time.Since(time.UnixMicro(int64(written*1e6))) > lateTime
}

// sendReplies sends the replies to a message that opened their session late. When Slack delivered
// them, nothing said that they were for the bot. It may be repeated.
func (s *workspace) sendReplies(ctx context.Context, m incoming) error {
	replies, err := s.readThread(ctx, slackapi.GetConversationRepliesParameters{ChannelID: m.Channel, Timestamp: m.root(), Oldest: m.TS})
	if err != nil {
		return err
	}
	replies = slices.DeleteFunc(replies, func(r slackapi.Message) bool { return r.Timestamp <= m.TS })
	for _, r := range replies {
		e := envelope{App: m.app, ID: r.Timestamp, Authorizations: []authorization{{Enterprise: m.thread.Enterprise, Team: m.thread.Team, User: m.me.UserID}}}
		data, err := json.Marshal(r.Msg)
		if err == nil {
			err = json.Unmarshal(data, &e.Event)
		}
		if err != nil {
			return fmt.Errorf("reply %s: %w", r.Timestamp, err)
		}
		e.Event.Type, e.Event.Channel, e.Event.ChannelType = eventMessage, m.Channel, m.ChannelType
		item, ok := s.intake.eventItem(e, nil)
		if !ok || item.Kind != core.SlackMessage {
			continue
		}
		item.Gesture = "" // it was handled, and not for the bot
		reply := incoming{event: e.Event, app: m.app, me: m.me, thread: m.thread}
		if _, err := s.handleMessage(ctx, item, reply); err != nil {
			return err
		}
	}
	return nil
}
