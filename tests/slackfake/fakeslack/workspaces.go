package fakeslack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Workspace is a team with its channels, users and messages.
type Workspace struct {
	ID, Name string

	server     *Server
	users      []*User
	channels   []*Channel
	files      []*File
	ephemerals []Ephemeral
	bot        *User // the app's; nil where it was never installed
	installed  bool
}

// User is a person, or a bot, of a workspace. Its methods act as this user.
type User struct {
	ID, Name, RealName, Email string
	BotID, AppID              string // of bots
	Restricted                bool   // a guest; set it before use

	ws    *Workspace
	token string
}

// Channel is a conversation.
type Channel struct {
	ID, Name string
	Kind     string // channel, group, mpim or im
	User     string // the person in an im

	messages []*Message // by ts
}

// AddWorkspace adds a workspace without users and channels, in which the app is not
// installed.
func (s *Server) AddWorkspace(name string) *Workspace {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &Workspace{ID: s.newID("T"), Name: name, server: s}
	s.workspaces = append(s.workspaces, w)
	s.notifyWaiters()
	return w
}

// AddUser adds a person. The display name is the name.
func (w *Workspace) AddUser(name, email string) *User {
	return w.addUser(User{Name: strings.ToLower(name), RealName: name, Email: email})
}

// AddBot adds the bot user of another app.
func (w *Workspace) AddBot(name string) *User {
	return w.addUser(User{Name: name, RealName: name, BotID: "B" + strings.ToUpper(name), AppID: "A-" + name})
}

func (w *Workspace) addUser(u User) *User {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.insertUser(u)
}

func (w *Workspace) insertUser(u User) *User {
	u.ID, u.ws = w.server.newID("U"), w
	w.users = append(w.users, &u)
	kind := userToken
	if u.BotID != "" {
		kind = botToken
	}
	u.token = w.server.addToken(kind, &u).value
	w.server.notifyWaiters()
	return &u
}

// AddChannel adds a public channel. With an empty id it gets a new one; the same id may be
// in two workspaces.
func (w *Workspace) AddChannel(id, name string) *Channel {
	c := &Channel{ID: id, Name: name, Kind: "channel"}
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if c.ID == "" {
		c.ID = w.server.newID("C")
	}
	w.channels = append(w.channels, c)
	w.server.notifyWaiters()
	return c
}

// DM returns the direct messages between the user and the app.
func (u *User) DM() *Channel {
	u.ws.server.mu.Lock()
	defer u.ws.server.mu.Unlock()
	return u.ws.openDM(u)
}

func (w *Workspace) openDM(u *User) *Channel {
	for _, c := range w.channels {
		if c.Kind == "im" && c.User == u.ID {
			return c
		}
	}
	c := &Channel{ID: w.server.newID("D"), Name: "dm-" + u.Name, Kind: "im", User: u.ID}
	w.channels = append(w.channels, c)
	w.server.notifyWaiters()
	return c
}

// Mention returns the markup that mentions the user.
func (u *User) Mention() string { return "<@" + u.ID + ">" }

// Bot returns the bot user of the app, nil where it was never installed.
func (w *Workspace) Bot() *User {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.bot
}

func (w *Workspace) findUser(id string) *User {
	return findFirst(w.users, func(u *User) bool { return u.ID == id })
}

func (w *Workspace) findChannel(id string) *Channel {
	return findFirst(w.channels, func(c *Channel) bool { return c.ID == id || c.Name != "" && "#"+c.Name == id })
}

// findFirst returns the first element that matches, or nil.
func findFirst[T any](list []*T, matches func(*T) bool) *T {
	if i := slices.IndexFunc(list, matches); i >= 0 {
		return list[i]
	}
	return nil
}

// userProfile is a user as users.info has it.
func (u *User) userProfile() reply {
	p := reply{"display_name": u.RealName, "real_name": u.RealName, "team": u.ws.ID}
	if u.Email != "" {
		p["email"] = u.Email
	}
	if u.AppID != "" {
		p["api_app_id"], p["bot_id"] = u.AppID, u.BotID
	}
	return reply{"id": u.ID, "team_id": u.ws.ID, "name": u.Name, "real_name": u.RealName, "is_bot": u.BotID != "", "is_restricted": u.Restricted,
		"deleted": false, "tz": "Europe/London", "is_email_confirmed": u.Email != "", "profile": p}
}

func usersInfo(c *call) (reply, error) {
	u := c.ws.findUser(c.args.text("user"))
	if u == nil {
		return nil, failure{code: "user_not_found"}
	}
	return reply{"user": u.userProfile()}, nil
}

// Kinds of tokens.
const (
	botToken  = "bot"
	userToken = "user"
	appToken  = "app"
)

// token is what a caller of the Web API shows.
type token struct {
	value string
	kind  string
	user  *User  // as whom it acts; nil for app-level tokens
	dead  string // the error of a token that was revoked
}

func (s *Server) addToken(kind string, u *User) *token {
	prefix := map[string]string{botToken: "xoxb-", userToken: "xoxp-"}[kind]
	t := &token{value: prefix + strings.ToLower(s.newID(u.ws.ID+"-")), kind: kind, user: u}
	s.tokens[t.value] = t
	return t
}

// Install installs the app in the workspace and returns the bot's token.
func (w *Workspace) Install() string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.installBot().value
}

// installBot returns a new token of the app's bot, which it creates if it is not there.
func (w *Workspace) installBot() *token {
	s := w.server
	w.installed = true
	if w.bot != nil {
		return s.addToken(botToken, w.bot)
	}
	w.bot = w.insertUser(User{Name: appName, RealName: appName, BotID: s.newID("B"), AppID: appID})
	return s.tokens[w.bot.token]
}

// Uninstall removes the app: its tokens die, and it gets tokens_revoked and
// app_uninstalled.
func (w *Workspace) Uninstall() {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	if !w.installed {
		return
	}
	w.revokeTokens("account_inactive")
	w.server.emitEvent(w, "", reply{"type": "app_uninstalled"})
	w.installed = false
}

// revokeTokens kills the bot's tokens, which then fail with the error.
func (w *Workspace) revokeTokens(code string) {
	for _, t := range w.server.tokens {
		if t.user == w.bot {
			t.dead = code
		}
	}
	w.server.emitEvent(w, "", reply{"type": "tokens_revoked", "tokens": reply{"oauth": []string{}, "bot": []string{w.bot.ID}}})
}

// checkToken returns the token that a request shows, or the error of Slack.
func (s *Server) checkToken(value string) (*token, error) {
	t := s.tokens[value]
	switch {
	case value == "":
		return nil, failure{code: "not_authed"}
	case t == nil:
		return nil, failure{code: "invalid_auth"}
	case t.dead != "":
		return nil, failure{code: t.dead}
	}
	return t, nil
}

func authTest(c *call) (reply, error) {
	u := c.token.user
	r := reply{"url": c.s.URL + "/", "team": c.ws.Name, "team_id": c.ws.ID, "user": u.Name, "user_id": u.ID, "is_enterprise_install": false}
	if u.BotID != "" {
		r["bot_id"] = u.BotID
	}
	return r, nil
}

// authCode is what the redirect after an approval carries.
type authCode struct {
	user     *User // who installed
	redirect string
}

// Approve installs the app as a user would who opens the address of the installation and
// allows it: the redirect goes to the app with a code and the cookies of the browser. It returns
// the app's answer.
func (u *User) Approve(ctx context.Context, authorizeURL string, cookies ...*http.Cookie) (status int, body string, err error) {
	address, err := url.Parse(authorizeURL)
	if err != nil {
		return 0, "", fmt.Errorf("read the address of the installation: %w", err)
	}
	target, err := u.approveInstall(address.Query())
	if err != nil {
		return 0, "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, "", err
	}
	for _, c := range cookies {
		request.AddCookie(c)
	}
	response, err := u.ws.server.client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	return response.StatusCode, string(data), err
}

// approveInstall creates a code, and returns where to send the browser. It takes mu.
func (u *User) approveInstall(query url.Values) (string, error) {
	s := u.ws.server
	s.mu.Lock()
	defer s.mu.Unlock()
	redirect, err := url.Parse(firstOf(query.Get("redirect_uri"), s.urls.Redirect))
	switch {
	case query.Get("client_id") != clientID:
		return "", errors.New("invalid_client_id")
	case err != nil || redirect.Host == "" || !strings.HasPrefix(redirect.Scheme, "http"):
		return "", errors.New("bad_redirect_uri")
	}
	code := strings.ToLower(s.newID("code-"))
	s.codes[code] = &authCode{user: u, redirect: query.Get("redirect_uri")}
	values := redirect.Query()
	values.Set("code", code)
	values.Set("state", query.Get("state"))
	redirect.RawQuery = values.Encode()
	return redirect.String(), nil
}

// oauthAccess exchanges a code, which works once.
func oauthAccess(c *call) (reply, error) {
	switch {
	case c.args.text("client_id") != clientID:
		return nil, failure{code: "invalid_client_id"}
	case c.args.text("client_secret") != clientSecret:
		return nil, failure{code: "bad_client_secret"}
	}
	code := c.s.codes[c.args.text("code")]
	switch {
	case code == nil:
		return nil, failure{code: "invalid_code"}
	case code.redirect != c.args.text("redirect_uri"):
		return nil, failure{code: "bad_redirect_uri"}
	}
	delete(c.s.codes, c.args.text("code"))
	t := code.user.ws.installBot()
	return reply{"access_token": t.value, "token_type": "bot", "scope": strings.Join(scopes(), ","), "bot_user_id": t.user.ID, "app_id": appID,
		"team": reply{"id": code.user.ws.ID, "name": code.user.ws.Name}, "enterprise": nil, "is_enterprise_install": false, "authed_user": reply{"id": code.user.ID}}, nil
}
