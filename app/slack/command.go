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
		report, err = s.Chat.Inspector.Report(ctx, s.tenant(), session)
		share := 0
		if report.Usable > 0 {
			share = 100 * report.Used / report.Usable
		}
		text := fmt.Sprintf("The next prompt for %s has %d of %d tokens (%d %%).", report.Model, report.Used, report.Usable, share)
		for _, section := range report.Sections {
			if section.Messages > 0 {
				text += fmt.Sprintf("\n• %s: %d tokens, %d messages", section.Name, section.Tokens, section.Messages)
			}
		}
		if report.SummaryVersion > 0 {
			text += fmt.Sprintf("\nSummary version %d is in use.", report.SummaryVersion)
		}
		if report.WillTrigger {
			text += "\nThe next message starts a summarization."
		}
		answer = text
	}
	if isFinal(err) {
		return core.ShownMessage(err, ""), nil
	}
	return answer, err
}

// maxSessions is how many of a person's sessions a slash command considers.
const maxSessions = 50

// handleCommand executes a slash command. It does not say in which thread it was written: it is
// for the person's only conversation in the channel.
func (s *workspace) handleCommand(ctx context.Context, c slackapi.SlashCommand) error {
	name, argument, ok := parseCommand("/" + strings.TrimPrefix(strings.TrimSpace(c.Text), "/")) // /bobbin context
	if !ok {
		return s.respond(ctx, c.ResponseURL, "Write one of: /bobbin context, /bobbin summarize, /bobbin stop.")
	}
	who, err := s.findPerson(ctx, c.TeamID, c.UserID)
	if err != nil {
		return err
	}
	page, err := s.Sessions.List(ctx, core.Tenant{Owner: s.Settings.Owner, User: who.ID}, core.SessionQuery{PageQuery: core.PageQuery{Limit: maxSessions}})
	if err != nil {
		return err
	}
	var sessions []core.Session
	for _, session := range page.Items {
		thread, err := s.Threads.OfSession(ctx, s.tenant(), session.ID)
		switch {
		case errors.Is(err, core.ErrNotFound):
		case err != nil:
			return err
		case thread.Channel == c.ChannelID:
			sessions = append(sessions, session)
		}
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

type interaction struct {
	Type        string `json:"type"`
	App         string `json:"api_app_id"`
	Trigger     string `json:"trigger_id"`
	Callback    string `json:"callback_id"`
	ResponseURL string `json:"response_url"`
	Team        struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		Channel string `json:"channel_id"`
		TS      string `json:"message_ts"`
	} `json:"container"`
	Message struct {
		TS     string `json:"ts"`
		Thread string `json:"thread_ts"`
	} `json:"message"`
	Actions []action `json:"actions"`
}

type action struct {
	ID    string `json:"action_id"`
	Value string `json:"value"`
}

// The types of interactions.
const (
	interactionClick    = "block_actions"
	interactionShortcut = "message_action"
)

func (c interaction) isKnown() bool {
	if c.Type == interactionShortcut {
		return c.Callback == core.SlackShortcutContext
	}
	return c.Type == interactionClick && len(c.Actions) == 1 &&
		slices.Contains([]string{core.SlackActionApprove, core.SlackActionDeny, core.SlackActionFeedback}, c.Actions[0].ID)
}

func (c interaction) channel() string  { return cmp.Or(c.Channel.ID, c.Container.Channel) }
func (c interaction) userTeam() string { return cmp.Or(c.User.Team, c.Team.ID) }

func (s *workspace) handleInteraction(ctx context.Context, c interaction) error {
	who, err := s.findPerson(ctx, c.userTeam(), c.User.ID)
	if err != nil {
		return err
	}
	answer := ""
	switch {
	case c.Type == interactionShortcut:
		answer, err = s.showContext(ctx, c)
	case c.Actions[0].ID == core.SlackActionFeedback:
		answer, err = s.recordFeedback(ctx, c)
	default:
		answer, err = s.decide(ctx, c, who)
	}
	if isFinal(err) {
		answer, err = core.ShownMessage(err, ""), nil
	}
	if err != nil || answer == "" {
		return err
	}
	return s.respond(ctx, c.ResponseURL, answer)
}

// showContext answers the shortcut for the context of the message's thread.
func (s *workspace) showContext(ctx context.Context, c interaction) (string, error) {
	thread, err := s.findThread(ctx, s.team, c.channel(), cmp.Or(c.Message.Thread, c.Message.TS))
	if err != nil {
		return "", err
	}
	if thread.SessionID == "" {
		return "There is no conversation in this thread.", nil
	}
	return s.runCommand(ctx, thread.SessionID, commandContext, "")
}

// decide answers the question whether a tool may start. The person who asked may, and the
// approvers of the settings.
func (s *workspace) decide(ctx context.Context, c interaction, who person) (string, error) {
	runID, approval, _ := strings.Cut(c.Actions[0].Value, "/")
	run, err := s.Runs.Get(ctx, s.tenant(), core.RunID(runID))
	if err != nil {
		return "", err
	}
	approver := c.userTeam() == s.team && slices.Contains(s.Settings.Approvers, c.User.ID)
	if run.User != who.ID && !approver {
		return "Only the person who asked, and the approvers of this workspace, decide about this.", nil
	}
	_, err = s.Chat.Decide(ctx, s.tenant(), run.ID, core.ApprovalID(approval), core.ApprovalDecision{
		Approve: c.Actions[0].ID == core.SlackActionApprove, By: who.ID,
	})
	return "", err // the buttons go with the event of the decision
}

func (s *workspace) recordFeedback(ctx context.Context, c interaction) (string, error) {
	post, err := s.Posts.PostAt(ctx, s.team, c.channel(), cmp.Or(c.Message.TS, c.Container.TS))
	if err != nil {
		return "", err
	}
	rating := core.Rating(c.Actions[0].Value)
	if rating != core.RatingUp && rating != core.RatingDown {
		return "", core.Errorf(core.ErrInvalid, "this is not a rating")
	}
	_, err = s.Chat.UpdateMessage(ctx, s.tenant(), post.SessionID, core.MessageID(post.ItemID), core.MessagePatch{Feedback: &core.Feedback{Rating: rating, At: core.Now()}})
	return "Thank you for the feedback.", err
}
