package config

import (
	"encoding/base64"
	"regexp"

	"bobbin/app/core"
)

// Slack connects one workspace of Slack by a bot token, or many by OAuth. Without a bot token
// and a client id it is off.
type Slack struct {
	BotToken      Secret   `key:"bot_token" flag:"-"` // xoxb-…
	ClientID      string   `key:"client_id" flag:"-"` // of the app, which people install by OAuth
	ClientSecret  Secret   `key:"client_secret" flag:"-"`
	TokenKey      Secret   `key:"token_key" flag:"-"`      // base64 of the 32 bytes that seal stored tokens
	Teams         []string `key:"teams" flag:"-"`          // workspaces that may install the app; nil = all that Slack lets
	SigningSecret Secret   `key:"signing_secret" flag:"-"` // of the app; verifies what Slack sends by HTTP
	AppToken      Secret   `key:"app_token" flag:"-"`      // xapp-…; with it Bobbin connects to Slack (Socket Mode), and Slack needs no way in
	Owner         string   `key:"owner"`                   // of the sessions
	Agent         string   `key:"agent"`                   // that answers; empty = DefaultAgent
	APIURL        string   `key:"api_url"`                 // of Slack's Web API
	LinkByEmail   bool     `key:"link_by_email"`           // a Slack user is the user of the owner who is named by the confirmed e-mail
	MembersOnly   bool     `key:"members_only"`            // guests, and people of other companies, get no answer
	Approvers     []string `key:"approvers"`
}

// Enabled reports whether Bobbin takes part in Slack.
func (s Slack) Enabled() bool { return !s.BotToken.Empty() || s.OAuth() }

// OAuth reports whether people install the app in their workspaces.
func (s Slack) OAuth() bool { return s.ClientID != "" }

// tokenKeyBytes is the size of an AES-256 key.
const tokenKeyBytes = 32

// Key returns the key that seals stored tokens; nil if slack.token_key is not one.
func (s Slack) Key() []byte {
	key, err := base64.StdEncoding.DecodeString(s.TokenKey.Reveal())
	if err != nil || len(key) != tokenKeyBytes {
		return nil
	}
	return key
}

// Ids of Slack users and workspaces, and its tokens.
var (
	slackUser     = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
	slackTeam     = regexp.MustCompile(`^T[A-Z0-9]+$`)
	slackBotToken = regexp.MustCompile(`^xoxb-[A-Za-z0-9.-]+$`)
	slackAppToken = regexp.MustCompile(`^xapp-[A-Za-z0-9.-]+$`)
)

func (s Slack) validate(found *faults) {
	s.validateOAuth(found)
	if s.Enabled() {
		found.checkKey(s.OAuth() || slackBotToken.MatchString(s.BotToken.Reveal()), "slack.bot_token", "it is not a bot token: these begin with xoxb-")
		found.checkKey(!s.SigningSecret.Empty() || !s.AppToken.Empty(), "slack.signing_secret", "it is missing; set it, or slack.app_token for Socket Mode")
		found.checkKey(s.Owner != "", "slack.owner", "it is empty; name the owner of the sessions, such as %s", core.LocalOwner)
	} else {
		found.checkKey(s.SigningSecret.Empty() && s.AppToken.Empty(), "slack.bot_token", "it is missing, but slack.signing_secret or slack.app_token is set")
	}
	found.checkKey(s.AppToken.Empty() || slackAppToken.MatchString(s.AppToken.Reveal()), "slack.app_token", "it is not an app-level token: these begin with xapp-")
	found.checkKey(s.Agent == "" || isName(s.Agent), "slack.agent", "%q is not an agent's name; use lower-case letters, digits, - and _", s.Agent)
	found.checkKey(isAddress(s.APIURL), "slack.api_url", "%q is not an address; write for example https://slack.com/api/", s.APIURL)
	for _, id := range s.Approvers {
		found.checkKey(slackUser.MatchString(id), "slack.approvers", "%q is not the id of a Slack user, such as U012ABCDEF", core.Clip(id, 40))
	}
}

// validateOAuth checks what installations need.
func (s Slack) validateOAuth(found *faults) {
	for _, id := range s.Teams {
		found.checkKey(slackTeam.MatchString(id), "slack.teams", "%q is not the id of a workspace, such as T012ABCDEF", core.Clip(id, 40))
	}
	if !s.OAuth() {
		found.checkKey(s.ClientSecret.Empty() && s.TokenKey.Empty() && len(s.Teams) == 0, "slack.client_id", "it is missing, but slack.client_secret, slack.token_key or slack.teams is set")
		return
	}
	found.checkKey(s.BotToken.Empty(), "slack.client_id", "slack.bot_token is set too; keep that for one workspace, or slack.client_id for many")
	found.checkKey(!s.ClientSecret.Empty(), "slack.client_secret", "it is missing; copy it from the app's Basic Information")
	found.checkKey(!s.TokenKey.Empty(), "slack.token_key", "it is missing, and encrypts the stored tokens: make one with: openssl rand -base64 32")
	found.checkKey(s.TokenKey.Empty() || s.Key() != nil, "slack.token_key", "it is not base64 of %d bytes: make one with: openssl rand -base64 32", tokenKeyBytes)
	found.checkKey(!s.LinkByEmail || len(s.Teams) > 0, "slack.link_by_email", "anybody's workspace could say whose e-mail address an account has; name your own in slack.teams")
}
