package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

// How long clients and tokens are used.
const (
	clientLife   = 15 * time.Second // until the installation is read again
	rotateBefore = time.Hour        // a token is replaced so long before it expires
	rotateLease  = time.Minute      // outlives the longest call
	maxClients   = 10_000
)

// errNotInstalled says that there is no token for a workspace.
var errNotInstalled = errors.New("the app is not installed in this workspace of Slack")

// Clients has the client of each workspace: by slack.bot_token, or by the installations. Safe
// for concurrent use.
type Clients struct {
	settings config.Slack
	vault    vault
	store    core.SlackInstallationStore // nil with slack.bot_token
	log      *slog.Logger

	mu    sync.Mutex
	known map[string]*clientEntry // by enterprise and team; guarded by mu
}

// NewClients returns the clients of the settings. The store has the installations; it is nil
// with slack.bot_token.
func NewClients(settings config.Slack, store core.SlackInstallationStore, log *slog.Logger) (*Clients, error) {
	c := &Clients{settings: settings, store: store, log: log, known: map[string]*clientEntry{}}
	var err error
	if settings.OAuth() {
		c.vault, err = newVault(settings.Key())
	}
	return c, err
}

// client acts as the app's bot in a workspace, or in those of an organization.
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
func (c *Clients) entry(enterprise, team string) *clientEntry {
	key := enterprise + "/" + team
	if !c.settings.OAuth() {
		key = ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[key] == nil {
		if len(c.known) >= maxClients {
			clear(c.known)
		}
		c.known[key] = &clientEntry{}
	}
	return c.known[key]
}

// of returns the client of a workspace, which knows who it is: without that Bobbin could answer
// itself. errNotInstalled if there is none.
func (c *Clients) of(ctx context.Context, enterprise, team string) (*client, error) {
	e := c.entry(enterprise, team)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.client == nil || !time.Now().Before(e.until) {
		token, err := c.findToken(ctx, enterprise, team)
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
	me := e.client.me
	if !c.settings.OAuth() && team != me.TeamID && (me.EnterpriseID == "" || enterprise != me.EnterpriseID) {
		return nil, errNotInstalled // another workspace, whose token this is not
	}
	return e.client, nil
}

// FindOrganization returns the organization of a workspace in which the app is installed, by itself
// or for the organization that is named; empty = it belongs to none. ErrInvalid if the app is not
// installed there, ErrUnavailable if Slack does not say.
func (c *Clients) FindOrganization(ctx context.Context, organization, team string) (string, error) {
	api, err := c.of(ctx, organization, team)
	switch {
	case errors.Is(err, errNotInstalled):
		return "", core.Errorf(core.ErrInvalid, "the app is not installed in the workspace %s of Slack; if it is installed for an organization, name that, too (enterprise)", team)
	case err != nil:
		return "", &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "Slack does not say whether the app is installed in the workspace; try again later"}
	}
	return api.me.EnterpriseID, nil
}

// forget lets the next call find out whether the token is still good.
func (c *Clients) forget(enterprise, team string) {
	e := c.entry(enterprise, team)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.client = nil
}

// findToken returns the bot token for a workspace.
func (c *Clients) findToken(ctx context.Context, enterprise, team string) (string, error) {
	if !c.settings.OAuth() {
		return c.settings.BotToken.Reveal(), nil
	}
	i, err := c.find(ctx, enterprise, team)
	if err == nil && expiresIn(i, rotateBefore) {
		i, err = c.rotate(ctx, i, enterprise)
	}
	if err != nil {
		return "", err
	}
	t, err := c.vault.openTokens(i)
	return t.Access, err
}

// find returns the active installation for a workspace.
func (c *Clients) find(ctx context.Context, enterprise, team string) (core.SlackInstallation, error) {
	i, err := c.store.Find(ctx, enterprise, team)
	if errors.Is(err, core.ErrNotFound) {
		err = errNotInstalled
	}
	return i, err
}

// expiresIn reports whether the token of the installation expires within the time.
func expiresIn(i core.SlackInstallation, d time.Duration) bool {
	return i.ExpiresAt != nil && time.Until(*i.ExpiresAt) < d
}

// rotate returns the installation with new tokens, or as another process has rotated it. The
// present token works until it expires, also after that, so failures count only then.
func (c *Clients) rotate(ctx context.Context, i core.SlackInstallation, enterprise string) (core.SlackInstallation, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rotateLease/2) // a refresh token works once: its answer must be stored
	defer cancel()
	leased, err := c.store.Lease(ctx, i, rotateLease)
	now := i
	switch {
	case err != nil:
	case leased:
		now, err = c.refresh(ctx, i)
	default:
		now, err = c.find(ctx, enterprise, i.Team)
	}
	if errors.Is(err, errNotInstalled) {
		return i, err
	}
	if err != nil {
		c.log.ErrorContext(ctx, "tokens of a workspace of Slack not rotated; if this remains, install the app there again", "team", i.Team, "err", err)
	}
	if !expiresIn(now, 0) {
		return now, nil
	}
	if err == nil {
		err = errors.New("another process rotates the tokens")
	}
	return now, err
}

// refresh exchanges the refresh token of the installation, and stores what it gets.
func (c *Clients) refresh(ctx context.Context, i core.SlackInstallation) (core.SlackInstallation, error) {
	t, err := c.vault.openTokens(i)
	if err != nil {
		return i, err
	}
	answer, err := slackapi.RefreshOAuthV2TokenContext(ctx, &http.Client{Timeout: apiTime}, c.settings.ClientID, c.settings.ClientSecret.Reveal(), t.Refresh,
		slackapi.OAuthOptionAPIURL(apiAddress(c.settings)))
	if err != nil {
		return i, fmt.Errorf("oauth.v2.access: %w", err)
	}
	next := i
	if err := c.vault.sealTokens(&next, answer); err != nil {
		return i, err
	}
	return next, c.store.Rotate(ctx, i.Tokens, next)
}
