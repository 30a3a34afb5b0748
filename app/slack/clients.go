package slack

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

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

// How long names are remembered, how many, and how long they may be.
const (
	nameLife = time.Hour
	maxNames = 10_000
	maxName  = 80 // characters
)

// person is who writes in Slack, as far as Slack says; of a channel the name.
type person struct {
	ID       string // of the user in Bobbin: findPerson knows it
	Name     string
	Timezone string
	Email    string // only a confirmed one, of a full member of the workspace
	Team     string
	Guest    bool // no full member of the workspace, or of its organization
}

// knownName is a person or a channel that is remembered, by team and id.
type knownName struct {
	person
	until time.Time
}

// findUser returns who a user is; the id as the name of one that Slack does not show.
func (s *workspace) findUser(ctx context.Context, id string) (person, error) {
	return s.Clients.lookUpName(s.team, id, func() (person, error) {
		u, err := s.api.GetUserInfoContext(ctx, id)
		if err != nil {
			return person{}, fmt.Errorf("users.info: %w", err)
		}
		p := person{Name: u.Name, Timezone: u.TZ, Team: u.TeamID}
		for _, name := range []string{u.RealName, u.Profile.RealName, u.Profile.DisplayName} {
			if cleanName(name) != "" {
				p.Name = name
			}
		}
		outside := u.TeamID != s.team && (s.api.me.EnterpriseID == "" || u.Enterprise.EnterpriseID != s.api.me.EnterpriseID)
		p.Guest = outside || u.IsStranger || u.IsRestricted || u.IsUltraRestricted
		if u.IsEmailConfirmed && !u.IsBot && !u.IsStranger && !u.IsRestricted && !u.IsUltraRestricted {
			p.Email = strings.ToLower(u.Profile.Email)
		}
		return p, nil
	})
}

func (c *Clients) findChannel(ctx context.Context, api *client, team, id string) (person, error) {
	return c.lookUpName(team, id, func() (person, error) {
		c, err := api.GetConversationInfoContext(ctx, &slackapi.GetConversationInfoInput{ChannelID: id})
		if err != nil {
			return person{}, fmt.Errorf("conversations.info: %w", err)
		}
		return person{Name: c.Name}, nil
	})
}

// lookUpName returns what is known of the id in the team, or asks. What Slack refuses to say is its id.
func (c *Clients) lookUpName(team, id string, ask func() (person, error)) (person, error) {
	key := team + "/" + id
	if found, ok := c.names.Get(key); ok && time.Now().Before(found.until) {
		return found.person, nil
	}
	p, err := ask()
	if _, refused := errors.AsType[slackapi.SlackErrorResponse](err); err != nil && !refused {
		return person{}, err
	}
	p.Name = cmp.Or(cleanName(p.Name), id)
	c.names.Set(key, knownName{person: p, until: time.Now().Add(nameLife)})
	return p, nil
}

// ForgetUser removes what is remembered of a user: the names of the person in Slack, by the user's
// id in Bobbin or the e-mail address that is the id.
func (s *Service) ForgetUser(user string) {
	s.Clients.names.DeleteFunc(func(key string, known knownName) bool {
		_, id, _ := strings.Cut(key, "/")
		return known.Email != "" && known.Email == user || strings.HasPrefix(user, "slack:") && strings.HasSuffix(user, "/"+id)
	})
}

type resolved map[string]string

func (r resolved) of(id string) string { return cmp.Or(r[id], id) }

// maxMentions is how many names of one text are looked up.
const maxMentions = 50

// findPerson returns who a Slack user is in Bobbin. Only members of the workspace are linked by
// e-mail.
func (s *workspace) findPerson(ctx context.Context, team, id string) (person, error) {
	p, err := s.findUser(ctx, id)
	if err != nil {
		return person{}, err
	}
	p.ID, p.Guest = userID(team, id), p.Guest || p.Team == "" // Slack may not say who it is
	if _, err := time.LoadLocation(p.Timezone); err != nil {
		p.Timezone = ""
	}
	if s.Settings.LinkByEmail && p.Email != "" && team == s.team && p.Team == s.team {
		p.ID = p.Email
	}
	return p, nil
}

// cleanName returns a name in one line that can stand anywhere: without control characters.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.Join(strings.Fields(name), " ")
	if r := []rune(name); len(r) > maxName {
		name = string(r[:maxName])
	}
	return core.CleanText(name)
}
