package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// The commands that a message, a slash command or a shortcut may give.
const (
	commandContext   = "context"
	commandSummarize = "summarize"
	commandStop      = "stop"
)

// parseCommand returns the command that a message is: /context, /summarize with a focus, /stop.
func parseCommand(text string) (name, argument string, ok bool) {
	word, argument, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, slash := strings.CutPrefix(word, "/")
	known := slices.Contains([]string{commandContext, commandSummarize, commandStop}, name)
	return name, strings.TrimSpace(argument), slash && known
}

// runThreadCommand executes a command in the thread of the message, and answers its author alone.
func (s *workspace) runThreadCommand(ctx context.Context, m incoming, name, argument string) error {
	answer := "There is no conversation in this thread yet."
	if m.bound.SessionID != "" {
		var err error
		if answer, err = s.runCommand(ctx, m.bound.SessionID, name, argument); err != nil {
			return err
		}
	}
	s.tellPerson(ctx, m.event, answer)
	return nil
}

// runCommand executes a command for a session and returns what to say. An error is one after
// which it is tried again.
func (s *workspace) runCommand(ctx context.Context, session core.SessionID, name, argument string) (answer string, err error) {
	switch name {
	case commandStop:
		err = s.Chat.Stop(ctx, s.tenant(), session)
		answer = "Stopped."
	case commandSummarize:
		var summary core.Summary
		summary, err = s.Chat.Summarize(ctx, s.tenant(), session, argument)
		answer = fmt.Sprintf("Summarized: version %d covers %d messages.", summary.Version, summary.MessagesCovered)
	default:
		var report core.ContextReport
		report, err = s.Chat.Context(ctx, s.tenant(), session)
		answer = describeContext(report)
	}
	if isFinal(err) {
		var shown *core.Error
		errors.As(err, &shown)
		return shown.Message, nil
	}
	return answer, err
}

// describeContext returns a context report in a few words.
func describeContext(r core.ContextReport) string {
	share := 0
	if r.Usable > 0 {
		share = 100 * r.Used / r.Usable
	}
	text := fmt.Sprintf("The next prompt for %s has %d of %d tokens (%d %%).", r.Model, r.Used, r.Usable, share)
	for _, section := range r.Sections {
		if section.Messages > 0 {
			text += fmt.Sprintf("\n• %s: %d tokens, %d messages", section.Name, section.Tokens, section.Messages)
		}
	}
	if r.SummaryVersion > 0 {
		text += fmt.Sprintf("\nSummary version %d is in use.", r.SummaryVersion)
	}
	if r.WillTrigger {
		text += "\nThe next message starts a summarization."
	}
	return text
}

// maxSessions is how many of a person's sessions a slash command considers.
const maxSessions = 50

// handleCommand executes a slash command. It does not say in which thread it was written: it is
// for the person's only conversation in the channel.
func (s *workspace) handleCommand(ctx context.Context, c command) error {
	name, argument, ok := parseCommand("/" + strings.TrimPrefix(strings.TrimSpace(c.Text), "/")) // /bobbin context
	if !ok {
		return s.respond(ctx, c.ResponseURL, "Write one of: /bobbin context, /bobbin summarize, /bobbin stop.")
	}
	who, err := s.findPerson(ctx, c.Team, c.User)
	if err != nil {
		return err
	}
	sessions, err := s.sessionsIn(ctx, who, c.Channel)
	if err != nil {
		return err
	}
	if len(sessions) == 1 {
		answer, err := s.runCommand(ctx, sessions[0].ID, name, argument)
		if err != nil {
			return err
		}
		return s.respond(ctx, c.ResponseURL, answer)
	}
	answer := "You have no conversation in this channel."
	if len(sessions) > 1 {
		answer = fmt.Sprintf("You have %d conversations in this channel. Write in the thread: @%s /%s", len(sessions), s.api.me.User, name)
		for _, session := range sessions {
			answer += "\n• " + cmp.Or(session.Title, "(without a title)")
		}
	}
	return s.respond(ctx, c.ResponseURL, answer)
}

// sessionsIn returns the person's sessions that have a thread in the channel, the newest first.
func (s *Service) sessionsIn(ctx context.Context, who person, channel string) ([]core.Session, error) {
	page, err := s.Sessions.List(ctx, core.Tenant{Owner: s.Settings.Owner, User: who.ID}, core.SessionQuery{PageQuery: core.PageQuery{Limit: maxSessions}})
	if err != nil {
		return nil, err
	}
	var found []core.Session
	for _, session := range page.Items {
		thread, err := s.Threads.OfSession(ctx, s.tenant(), session.ID)
		switch {
		case errors.Is(err, core.ErrNotFound):
		case err != nil:
			return nil, err
		case thread.Channel == channel:
			found = append(found, session)
		}
	}
	return found, nil
}

// respond answers a command or a click, for the person alone.
func (s *Service) respond(ctx context.Context, responseURL, text string) error {
	u, err := url.Parse(responseURL)
	if err != nil || responseURL == "" || !s.trustedURL(u) {
		s.Logger.WarnContext(ctx, "user of Slack not answered: the response URL is not one of Slack")
		return nil
	}
	err = slackapi.PostWebhookCustomHTTPContext(ctx, responseURL, s.http, &slackapi.WebhookMessage{
		ResponseType: slackapi.ResponseTypeEphemeral, Text: escapeText(text), ReplaceOriginal: false,
	})
	if err != nil { // what was asked for is done; a URL may be used five times
		s.Logger.WarnContext(ctx, "user of Slack not answered", "err", err)
	}
	return nil
}
