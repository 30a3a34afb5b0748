package fakeslack

import (
	"slices"
	"strings"
	"time"
)

// Kinds of tokens.
const (
	botToken  = "bot"
	userToken = "user"
	appToken  = "app"
)

// token is what a caller of the Web API shows.
type token struct {
	value   string
	kind    string
	user    *User // as whom it acts; nil for app-level tokens
	scopes  []string
	expires time.Time // zero: never
	dead    string    // the error of a token that was revoked
	org     string    // acts in all workspaces of this organization; empty = in that of the user
}

func (t *token) hasScope(scope string) bool {
	return scope == "" || t.kind != botToken || slices.Contains(t.scopes, scope)
}

func (s *Server) addToken(kind string, u *User) *token {
	prefix := map[string]string{botToken: "xoxb-", userToken: "xoxp-"}[kind]
	t := &token{value: prefix + strings.ToLower(s.newID(u.ws.ID+"-")), kind: kind, user: u, scopes: s.opts.Scopes}
	s.tokens[t.value] = t
	return t
}

// Install installs the app in the workspace and returns the bot's token.
func (w *Workspace) Install() string {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.installBot("").value
}

// installBot returns a new token of the app's bot, which it creates if it is not there. With an
// organization the bot is in all of its workspaces.
func (w *Workspace) installBot(org string) *token {
	s := w.server
	w.installed = true
	var t *token
	if w.bot != nil {
		t = s.addToken(botToken, w.bot)
	} else {
		w.bot = w.insertUser(User{Name: s.opts.AppName, RealName: s.opts.AppName, BotID: s.newID("B"), AppID: s.opts.AppID})
		t = s.tokens[w.bot.token]
	}
	t.org = org
	for _, other := range s.workspaces {
		if org != "" && other.EnterpriseID == org {
			other.installed, other.orgWide = true, true
			if other.bot == nil {
				other.bot, other.users = w.bot, append(other.users, w.bot)
			}
		}
	}
	return t
}

// actsIn returns the workspace in which the token acts with the arguments: that of an
// organization in which the channel or the user is, and else the user's own.
func (s *Server) actsIn(t *token, a args) *Workspace {
	if t.org != "" {
		channel, user := firstOf(a.text("channel"), a.text("channel_id")), a.text("user")
		ws := findFirst(s.workspaces, func(w *Workspace) bool {
			return w.EnterpriseID == t.org && (channel != "" && w.findChannel(channel) != nil || channel == "" && user != "" && w.findUser(user) != nil)
		})
		if ws != nil {
			return ws
		}
	}
	return t.user.ws
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
	for _, other := range w.server.workspaces {
		if other == w || w.orgWide && other.EnterpriseID == w.EnterpriseID {
			other.installed = false
		}
	}
}

// revokeTokens kills the bot's tokens, which then fail with the error.
func (w *Workspace) revokeTokens(code string) {
	for _, t := range w.server.tokens {
		if t.user == w.bot {
			t.dead = code
		}
	}
	for value, t := range w.server.refreshes {
		if t.user == w.bot {
			delete(w.server.refreshes, value)
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
	case !t.expires.IsZero() && !s.opts.Now().Before(t.expires):
		return nil, failure{code: "token_expired"}
	}
	return t, nil
}

func authTest(c *call) (reply, error) {
	u := c.token.user
	r := reply{"url": c.s.URL + "/", "team": c.ws.Name, "team_id": c.ws.ID, "user": u.Name, "user_id": u.ID, "is_enterprise_install": false}
	if u.BotID != "" {
		r["bot_id"] = u.BotID
	}
	if c.ws.EnterpriseID != "" {
		r["enterprise_id"] = c.ws.EnterpriseID
	}
	if c.token.org != "" {
		r["team"], r["team_id"], r["is_enterprise_install"] = c.token.org, c.token.org, true
	}
	return r, nil
}

func authRevoke(c *call) (reply, error) {
	if !c.args.flag("test") {
		c.token.dead = "token_revoked"
	}
	return reply{"revoked": !c.args.flag("test")}, nil
}
