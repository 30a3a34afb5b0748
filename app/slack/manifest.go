package slack

import (
	"encoding/json"
	"strings"

	"bobbin/app/core"
)

// RequiredScopes returns the scopes that the bot token needs.
func RequiredScopes() []string {
	return []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read", "groups:history",
		"groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "users:read",
	}
}

// emailScope is needed for slack.link_by_email.
const emailScope = "users:read.email"

// neededScopes returns the scopes that the bot token needs, with or without e-mail addresses.
func neededScopes(email bool) []string {
	if email {
		return append(RequiredScopes(), emailScope)
	}
	return RequiredScopes()
}

// ManifestOptions are what a Slack app is made for.
type ManifestOptions struct {
	Address string // of Bobbin; empty = Socket Mode
	Email   bool   // it may read e-mail addresses
}

// Manifest returns the manifest of a Slack app as JSON.
func Manifest(o ManifestOptions) ([]byte, error) {
	address := strings.TrimSuffix(o.Address, "/")
	oauth := map[string]any{"scopes": map[string]any{"bot": neededScopes(o.Email)}}
	if address != "" {
		oauth["redirect_urls"] = []string{address + CallbackPath}
	}
	at := func(path string) map[string]any { // a request URL, where there is one
		if address == "" {
			return map[string]any{}
		}
		return map[string]any{"request_url": address + path}
	}
	events := at(EventsPath)
	events["bot_events"] = []string{
		eventStopped, eventMention, eventUninstalled, "message.channels", "message.groups", "message.im", "message.mpim", eventRevoked,
	}
	interactivity := at(InteractionsPath)
	interactivity["is_enabled"] = true
	command := map[string]any{"command": "/bobbin", "description": "About your conversation in this channel", "usage_hint": "context | summarize [focus] | stop", "should_escape": false}
	if address != "" {
		command["url"] = address + CommandsPath
	}
	return json.MarshalIndent(map[string]any{
		"display_information": map[string]any{"name": "Bobbin", "description": "Conversations with Bobbin, in Slack and on the web"},
		"features": map[string]any{
			"bot_user":       map[string]any{"display_name": "bobbin", "always_online": true},
			"agent_view":     map[string]any{"agent_description": "Answers in threads and direct messages"},
			"app_home":       map[string]any{"messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
			"slash_commands": []any{command},
			"shortcuts": []any{map[string]any{
				"name": "Show context", "type": "message", "callback_id": core.SlackShortcutContext, "description": "How full this conversation's context window is",
			}},
		},
		"oauth_config": oauth,
		"settings": map[string]any{
			"event_subscriptions": events, "interactivity": interactivity, "socket_mode_enabled": address == "",
			"org_deploy_enabled": false, "token_rotation_enabled": false,
		},
	}, "", "  ")
}
