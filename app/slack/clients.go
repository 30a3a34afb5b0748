package slack

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db/repositories"
)

// How long clients and tokens are used.
const (
	clientLife = 15 * time.Second // until the installation is read again
	maxClients = 10_000
)

// errNotInstalled says that there is no token for a workspace.
var errNotInstalled = errors.New("the app is not installed in this workspace of Slack")

// Clients has the client of each workspace: by slack.bot_token, or by the installations. Safe
// for concurrent use.
type Clients struct {
	settings config.Slack
	vault    vault
	store    *repositories.SlackInstallations // nil with slack.bot_token
	names    *core.Cache[string, knownName]
	known    *core.Cache[string, *clientEntry] // by team
}

// NewClients returns the clients of the settings. The store has the installations; it is nil
// with slack.bot_token.
func NewClients(settings config.Slack, store *repositories.SlackInstallations) (*Clients, error) {
	c := &Clients{settings: settings, store: store, names: core.NewCache[string, knownName](maxNames), known: core.NewCache[string, *clientEntry](maxClients)}
	c.known.Set("", &clientEntry{}) // of slack.bot_token: OnlyTeam reads it after of
	var err error
	if settings.OAuth() {
		c.vault, err = newVault(settings.Key())
	}
	return c, err
}

// client acts as the app's bot in a workspace.
type client struct {
	*slackapi.Client

	token string
	me    *slackapi.AuthTestResponse
}

// newClient returns a client of the Web API. It does not repeat calls.
func newClient(settings config.Slack, token string) *client {
	api := slackapi.New(token, slackapi.OptionAPIURL(apiAddress(settings)), slackapi.OptionAppLevelToken(settings.AppToken.Reveal()),
		slackapi.OptionHTTPClient(&http.Client{Timeout: apiTime}))
	return &client{Client: api, token: token}
}

// apiAddress returns the address of the Web API with a slash at its end.
func apiAddress(settings config.Slack) string {
	return strings.TrimSuffix(settings.APIURL, "/") + "/"
}

// clientEntry is the client of a workspace.
type clientEntry struct {
	mu     sync.Mutex
	client *client   // guarded by mu; nil = not known
	until  time.Time // guarded by mu
}

// entry returns the entry of a workspace. With slack.bot_token there is one.
func (c *Clients) entry(key string) *clientEntry {
	if !c.settings.OAuth() {
		key = ""
	}
	e, ok := c.known.Get(key)
	if !ok { // two may do so at once
		e = &clientEntry{}
		c.known.Set(key, e)
	}
	return e
}

// of returns the client of a workspace, which knows who it is: without that Bobbin could answer
// itself. errNotInstalled if there is none.
func (c *Clients) of(ctx context.Context, team string) (*client, error) {
	e := c.entry(team)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client == nil || !time.Now().Before(e.until) {
		token, err := c.settings.BotToken.Reveal(), error(nil)
		if c.settings.OAuth() {
			var i core.SlackInstallation
			if i, err = c.find(ctx, team); err == nil {
				token, err = c.vault.openToken(i)
			}
		}
		if err != nil {
			e.client = nil
			return nil, err
		}
		if e.client == nil || e.client.token != token {
			next := newClient(c.settings, token)
			if next.me, err = next.AuthTestContext(ctx); err != nil {
				return nil, fmt.Errorf("auth.test: %w", err)
			}
			e.client = next
		}
		e.until = time.Now().Add(clientLife)
	}
	if !c.settings.OAuth() && team != e.client.me.TeamID {
		return nil, errNotInstalled // another workspace, whose token this is not
	}
	return e.client, nil
}

// CheckInstalled returns ErrInvalid if the app is not installed in the workspace, ErrUnavailable if
// Slack does not say.
func (c *Clients) CheckInstalled(ctx context.Context, team string) error {
	_, err := c.of(ctx, team)
	switch {
	case errors.Is(err, errNotInstalled):
		return core.Errorf(core.ErrInvalid, "the app is not installed in the workspace %s of Slack", team)
	case err != nil:
		return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "Slack does not say whether the app is installed in the workspace; try again later"}
	}
	return nil
}

// OnlyTeam returns the workspace of slack.bot_token; ErrInvalid with slack.client_id, where there may be many.
func (c *Clients) OnlyTeam(ctx context.Context) (string, error) {
	if c.settings.OAuth() {
		return "", core.Errorf(core.ErrInvalid, "the app may be installed in many workspaces of Slack: name the team, such as T012ABCDEF")
	}
	_, err := c.of(ctx, "")
	if err != nil && !errors.Is(err, errNotInstalled) {
		return "", &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "Slack does not say which workspace the token is of; try again later"}
	}
	e := c.entry("")
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client.me.TeamID, nil
}

// Describe returns where people find a thread in Slack, as far as Slack says.
func (c *Clients) Describe(ctx context.Context, t core.SlackThread) (place core.SlackPlace) {
	api, err := c.of(ctx, t.Team)
	if err != nil {
		return place
	}
	if api.me.URL != "" {
		place.Link = strings.TrimSuffix(api.me.URL, "/") + "/archives/" + t.Channel + "/p" + strings.ReplaceAll(t.Thread, ".", "")
	}
	if channel, err := c.findChannel(ctx, api, t.Team, t.Channel); err == nil && channel.Name != t.Channel {
		place.ChannelName = channel.Name
	}
	return place
}

// forget lets the next call find out whether the token is still good.
func (c *Clients) forget(team string) {
	e := c.entry(team)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client = nil
}

// find returns the active installation for a workspace.
func (c *Clients) find(ctx context.Context, team string) (core.SlackInstallation, error) {
	i, err := c.store.Find(ctx, team)
	if errors.Is(err, core.ErrNotFound) {
		err = errNotInstalled
	}
	return i, err
}

// errSealed says that stored tokens cannot be opened.
var errSealed = errors.New("the stored tokens were sealed with another slack.token_key, or changed; restore that key, or install the app again")

// vault seals texts with AES-256-GCM. What is sealed for one name cannot be opened for another.
type vault struct{ aead cipher.AEAD }

// newVault returns a vault with a key of 32 bytes.
func newVault(key []byte) (vault, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return vault{}, fmt.Errorf("slack.token_key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return vault{aead}, err
}

func (v vault) seal(name string, plain []byte) []byte {
	return v.aead.Seal(nil, nil, plain, []byte(name))
}

func (v vault) open(name string, sealed []byte) ([]byte, error) {
	return v.aead.Open(nil, nil, sealed, []byte(name))
}

// tokensName is the name for which the tokens of an installation are sealed.
func tokensName(team string) string { return "slack_installations/" + team }

// openToken returns the bot token of an installation.
func (v vault) openToken(i core.SlackInstallation) (string, error) {
	plain, err := v.open(tokensName(i.Team), i.Tokens)
	if err != nil {
		return "", fmt.Errorf("workspace %s: %w", i.Team, errSealed)
	}
	return string(plain), nil
}
