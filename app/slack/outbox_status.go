package slack

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// statusTime bounds a call that says what the agent does: posts wait for it.
const statusTime = 5 * time.Second

// agentStatus returns what Slack shows of the agent after an event; empty = what it showed before.
// While it is processing, people have a button to stop it.
func agentStatus(event core.EventType) string {
	switch event {
	case core.EventRunStarted:
		return slack.AgentSessionStatusProcessing
	case core.EventRunWaiting:
		return slack.AgentSessionStatusSuspended
	case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		return slack.AgentSessionStatusActive
	default:
		return ""
	}
}

// showStatus lets Slack show what the agent does after the event. It is not repeated: without it
// only the button is missing. Where Slack has no such method, it is not called any more.
func (f *follower) showStatus(ctx context.Context, event core.EventType) {
	status := agentStatus(event)
	if _, none := f.noStatus.Load(f.Team); none || status == "" || status == f.status {
		return
	}
	f.status = status
	ctx, cancel := context.WithTimeout(ctx, statusTime)
	defer cancel()
	api, err := f.Clients.of(ctx, f.Team)
	if err == nil {
		_, err = api.SetAgentSessionStatusContext(ctx, slack.AgentSessionSetStatusParameters{ChannelID: f.Channel, ThreadTS: f.Thread, Status: status})
	}
	if isUnsupported(err) {
		f.noStatus.Store(f.Team, true)
	} else if err != nil {
		f.Logger.DebugContext(ctx, "status of the agent not shown in Slack", "session_id", f.SessionID, "status", status, "err", err)
	}
}

// isUnsupported reports whether the error says that the app has no such method in the workspace.
func isUnsupported(err error) bool {
	var answer slack.SlackErrorResponse
	return errors.As(err, &answer) && slices.Contains([]string{
		"feature_not_enabled", "method_deprecated", "unknown_method", "missing_scope", "not_allowed_token_type",
	}, answer.Err)
}
