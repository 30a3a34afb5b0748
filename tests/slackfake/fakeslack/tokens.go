package fakeslack

import (
	"strings"
)

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
