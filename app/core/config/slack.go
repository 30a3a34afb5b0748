package config

import (
	"encoding/base64"
	"net/url"
	"regexp"

	"bobbin/app/core"
)

// Slack connects one workspace of Slack by a bot token, or many by OAuth. Without a bot token
// and a client id it is off.
type Slack struct {
	BotToken      Secret // xoxb-…
	ClientID      string // of the app, which people install by OAuth
	ClientSecret  Secret
	TokenKey      Secret   // base64 of the 32 bytes that seal stored tokens
	Teams         []string // workspaces that may install the app; nil = all that Slack lets
	SigningSecret Secret   // of the app; verifies what Slack sends by HTTP
	AppToken      Secret   // xapp-…; with it Bobbin connects to Slack (Socket Mode), and Slack needs no way in
	Owner         string   // of the sessions
	Agent         string   // that answers; empty = DefaultAgent
	APIURL        string   // of Slack's Web API
	LinkByEmail   bool     // a Slack user is the user of the owner who is named by the confirmed e-mail
	MembersOnly   bool     // guests, and people of other companies, get no answer
	Approvers     []string
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

func defaultSlack() Slack {
	return Slack{Owner: core.LocalOwner, APIURL: "https://slack.com/api/"}
}

func slackKeys() []setting {
	return []setting{
		{name: "slack.bot_token", flagless: true, meaning: "bot token (`xoxb-…`) of the Slack app, for one workspace; without it and `slack.client_id` Slack is off. See [SLACK.md](SLACK.md)", field: func(c *Config) any { return &c.Slack.BotToken }},
		{name: "slack.client_id", flagless: true, meaning: "client id of the Slack app, for [many workspaces](SLACK.md#many-workspaces): people install it at `/slack/install`", field: func(c *Config) any { return &c.Slack.ClientID }},
		{name: "slack.client_secret", flagless: true, meaning: "client secret of the Slack app", field: func(c *Config) any { return &c.Slack.ClientSecret }},
		{name: "slack.token_key", flagless: true, meaning: "key that encrypts the tokens of installations in the database: 32 bytes in base64 (`openssl rand -base64 32`). Without the same key they must be installed again", field: func(c *Config) any { return &c.Slack.TokenKey }},
		{name: "slack.teams", flagless: true, meaning: "ids of workspaces (`T…`) that may install the Slack app; empty: all that Slack lets", field: func(c *Config) any { return &c.Slack.Teams }},
		{name: "slack.signing_secret", flagless: true, meaning: "signing secret of the Slack app, which verifies requests of Slack to `/slack/…`; without it only Socket Mode works", field: func(c *Config) any { return &c.Slack.SigningSecret }},
		{name: "slack.app_token", flagless: true, meaning: "app-level token (`xapp-…`, scope `connections:write`): Bobbin connects to Slack (Socket Mode), and need not be reachable from the internet", field: func(c *Config) any { return &c.Slack.AppToken }},
		{name: "slack.owner", meaning: "owner of the sessions of Slack: the name of the API key that sees them", field: func(c *Config) any { return &c.Slack.Owner }},
		{name: "slack.agent", meaning: "agent that answers in Slack; empty: `default_agent`", field: func(c *Config) any { return &c.Slack.Agent }},
		{name: "slack.api_url", meaning: "address of Slack's Web API; another one is for tests", field: func(c *Config) any { return &c.Slack.APIURL }},
		{name: "slack.link_by_email", meaning: "a person of the workspace is the end user whose id is the confirmed e-mail address of the Slack account (`auth.jwt`), and not `slack:<team>/<user>`", field: func(c *Config) any { return &c.Slack.LinkByEmail }},
		{name: "slack.members_only", meaning: "only full members of the workspace, or of its organization, get an answer: no guests, and no people of other companies in shared channels", field: func(c *Config) any { return &c.Slack.MembersOnly }},
		{name: "slack.approvers", meaning: "ids of Slack users (`U…`) who may approve tool calls of others; the person who asked always may", field: func(c *Config) any { return &c.Slack.Approvers }},
	}
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
	u, err := url.Parse(s.APIURL)
	found.checkKey(err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "", "slack.api_url", "%q is not an address; write for example https://slack.com/api/", s.APIURL)
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
	switch {
	case s.TokenKey.Empty():
		found.checkKey(false, "slack.token_key", "it is missing, and encrypts the stored tokens: make one with: openssl rand -base64 32")
	case s.Key() == nil:
		found.checkKey(false, "slack.token_key", "it is not base64 of %d bytes: make one with: openssl rand -base64 32", tokenKeyBytes)
	}
	found.checkKey(!s.LinkByEmail || len(s.Teams) > 0, "slack.link_by_email", "anybody's workspace could say whose e-mail address an account has; name your own in slack.teams")
}
