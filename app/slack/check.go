package slack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

// Finding is the result of one check.
type Finding struct {
	Check  string
	Detail string
	Do     string // what to do; empty = it works
}

// maxSkew is how far this machine's clock may be off before a check complains. Requests are
// refused from five minutes on.
const maxSkew = 2 * time.Minute

// Check returns what works of the settings and the installations, and what does not. With the
// address of a Bobbin it sends a signed request there, as Slack does.
func Check(ctx context.Context, cfg config.Slack, installed []core.SlackInstallation, address string) []Finding {
	ctx, cancel := context.WithTimeout(ctx, 3*apiTime)
	defer cancel()
	var found []Finding
	if !cfg.OAuth() {
		installed = nil
		found = checkToken(ctx, cfg, "bot token", cfg.BotToken.Reveal())
		if found[0].Do != "" {
			return found
		}
	} else if len(installed) == 0 {
		found = []Finding{{"workspaces", "the app is not installed in any workspace", "open " + InstallPath + " of this Bobbin in a browser"}}
	}
	for _, i := range installed {
		name, token := "workspace "+i.Team, ""
		vault, err := newVault(cfg.Key())
		if err == nil {
			token, err = vault.openToken(i)
		}
		switch {
		case i.State == core.SlackRevoked:
			found = append(found, Finding{name, cleanName(i.Name) + ": removed in Slack; nothing is sent there", ""})
		case err != nil:
			found = append(found, Finding{name, failure(err), "set slack.token_key as it was, or install the app again at " + InstallPath})
		default:
			found = append(found, checkToken(ctx, cfg, name, token)...)
		}
	}
	if !cfg.AppToken.Empty() {
		f := Finding{"socket mode", "Slack accepts the app token", ""}
		if _, _, err := newClient(cfg, "").StartSocketModeContext(ctx); err != nil {
			f.Detail, f.Do = failure(err), "enable Socket Mode, and set slack.app_token to a token with the scope connections:write"
		}
		found = append(found, f)
	}
	if address != "" {
		found = append(found, checkReach(ctx, cfg, address))
	}
	return found
}

// checkToken checks a bot token, its scopes and the clock.
func checkToken(ctx context.Context, cfg config.Slack, name, token string) []Finding {
	me, err := newClient(cfg, token).AuthTestContext(ctx)
	if err != nil {
		do := "install the app in the workspace and set slack.bot_token to its Bot User OAuth Token"
		if cfg.OAuth() {
			do = "install the app there again at " + InstallPath
		}
		return []Finding{{name, failure(err), do}}
	}
	needed, missing := neededScopes(cfg.LinkByEmail), []string(nil)
	granted := strings.FieldsFunc(me.Header.Get("X-OAuth-Scopes"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, scope := range needed {
		if !slices.Contains(granted, scope) {
			missing = append(missing, scope)
		}
	}
	scopes := Finding{"scopes", fmt.Sprintf("all %d are granted", len(needed)), ""}
	if len(missing) > 0 {
		scopes = Finding{"scopes", "missing: " + strings.Join(missing, ", "), "add them to the app (bobbin slack manifest has all), and install it again"}
	}
	clock := Finding{"clock", "Slack does not say what time it is", ""}
	if at, err := http.ParseTime(me.Header.Get("Date")); err == nil {
		skew := time.Since(at).Round(time.Second)
		clock.Detail = fmt.Sprintf("%s off", skew)
		if skew.Abs() > maxSkew {
			clock.Detail, clock.Do = fmt.Sprintf("this machine is %s off; Slack's requests are refused from five minutes on", skew), "synchronize the clock (NTP)"
		}
	}
	return []Finding{{name, fmt.Sprintf("%s in the workspace %s (%s)", me.User, me.Team, me.TeamID), ""}, scopes, clock}
}

// failure returns why a call failed, without addresses that may hold tokens.
func failure(err error) string { return core.Clip(err.Error(), 200) }

// checkReach asks the Bobbin at the address to verify itself, as Slack does.
func checkReach(ctx context.Context, cfg config.Slack, address string) Finding {
	target := strings.TrimSuffix(address, "/") + EventsPath
	challenge := core.NewID[string]()
	body, err := json.Marshal(map[string]string{"type": "url_verification", "challenge": challenge})
	if err != nil {
		return Finding{"reach", failure(err), "report this"}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return Finding{"reach", failure(err), "give the address of this Bobbin, such as https://bobbin.example.org"}
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(cfg.SigningSecret.Reveal()))
	fmt.Fprintf(mac, "v0:%s:%s", timestamp, body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Slack-Request-Timestamp", timestamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	response, err := (&http.Client{Timeout: apiTime}).Do(r)
	if err != nil {
		return Finding{"reach", failure(err), "check the address, the proxy in front and its certificate"}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxUnsigned))
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return Finding{"reach", "the server refuses the signature", "start it with the same slack.signing_secret, and check the clocks; a proxy must pass bodies and headers unchanged"}
	case response.StatusCode != http.StatusOK || err != nil || !strings.Contains(string(answer), challenge):
		return Finding{"reach", fmt.Sprintf("status %d from %s", response.StatusCode, target), "let the proxy pass /slack/… to Bobbin, and start it with slack.bot_token, or slack.client_id, and slack.signing_secret"}
	}
	return Finding{"reach", target + " answers", ""}
}

// neededScopes returns the scopes that the bot token needs; email is for slack.link_by_email.
func neededScopes(email bool) []string {
	scopes := []string{
		"app_mentions:read", "assistant:write", "channels:history", "channels:read", "chat:write", "commands", "files:read", "groups:history",
		"groups:read", "im:history", "im:read", "im:write", "mpim:history", "mpim:read", "users:read", "users:read.email",
	}
	if email {
		return scopes
	}
	return scopes[:len(scopes)-1]
}

// Manifest returns the manifest of a Slack app for the address of Bobbin as JSON; an empty address = Socket Mode.
// With email the app may read e-mail addresses.
func Manifest(address string, email bool) ([]byte, error) {
	address = strings.TrimSuffix(address, "/")
	oauth := map[string]any{"scopes": map[string]any{"bot": neededScopes(email)}}
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
