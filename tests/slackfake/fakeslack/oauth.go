package fakeslack

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// codeLife is how long the code of an installation may be exchanged.
const codeLife = 10 * time.Minute

// authCode is what the redirect after an approval carries.
type authCode struct {
	ws       *Workspace
	org      string // installed for all workspaces of this organization; empty = for ws
	user     *User  // who installed
	redirect string
	expires  time.Time
}

// Approve installs the app as a user would who opens the address of the installation and
// allows it: the redirect goes to the app with a code and the cookies of the browser. It returns
// the app's answer.
func (u *User) Approve(ctx context.Context, authorizeURL string, cookies ...*http.Cookie) (status int, body string, err error) {
	return u.approve(ctx, u.ws.ID, authorizeURL, cookies)
}

// ApproveForOrganization is Approve for all workspaces of the user's organization.
func (u *User) ApproveForOrganization(ctx context.Context, authorizeURL string, cookies ...*http.Cookie) (status int, body string, err error) {
	return u.approve(ctx, u.ws.EnterpriseID, authorizeURL, cookies)
}

// approve installs the app in a workspace, or in all of an organization.
func (u *User) approve(ctx context.Context, where, authorizeURL string, cookies []*http.Cookie) (status int, body string, err error) {
	address, err := url.Parse(authorizeURL)
	if err != nil {
		return 0, "", fmt.Errorf("read the address of the installation: %w", err)
	}
	target, err := u.ws.server.approveInstall(address.Query(), where, u.ID)
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

// approveInstall creates a code for a workspace or an organization, and returns where to send the
// browser. Without a user it is the first one there. It takes mu.
func (s *Server) approveInstall(query url.Values, where, user string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	org := ""
	ws := findFirst(s.workspaces, func(w *Workspace) bool { return w.ID == where })
	if ws == nil && where != "" {
		org, ws = where, findFirst(s.workspaces, func(w *Workspace) bool { return w.EnterpriseID == where })
	}
	redirect, err := url.Parse(firstOf(query.Get("redirect_uri"), s.urls.Redirect))
	switch {
	case query.Get("client_id") != s.opts.ClientID:
		return "", errors.New("invalid_client_id")
	case err != nil || redirect.Host == "" || !strings.HasPrefix(redirect.Scheme, "http"):
		return "", errors.New("bad_redirect_uri")
	case ws == nil || len(ws.users) == 0:
		return "", errors.New("invalid_team")
	}
	installer := ws.findUser(user)
	if installer == nil {
		installer = ws.users[0]
	}
	code := strings.ToLower(s.newID("code-"))
	s.codes[code] = &authCode{ws: ws, org: org, user: installer, redirect: query.Get("redirect_uri"), expires: s.opts.Now().Add(codeLife)}
	values := redirect.Query()
	values.Set("code", code)
	values.Set("state", query.Get("state"))
	redirect.RawQuery = values.Encode()
	return redirect.String(), nil
}

// serveAuthorize is the page on which a user allows the installation. It takes mu.
func (s *Server) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, "<!doctype html><title>Install</title><h1>%s wants access</h1><p>Scopes: %s</p><form method=post action=\"?%s\">",
		html.EscapeString(s.opts.AppName), html.EscapeString(r.FormValue("scope")), html.EscapeString(r.URL.RawQuery))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ws := range s.workspaces {
		fmt.Fprintf(w, "<p><button name=team value=%q>Allow in %s</button>", ws.ID, html.EscapeString(ws.Name))
	}
	fmt.Fprint(w, "</form>")
}

func (s *Server) serveApproval(w http.ResponseWriter, r *http.Request) {
	target, err := s.approveInstall(r.URL.Query(), r.FormValue("team"), "")
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	http.Redirect(w, r, target, http.StatusFound)
}

// oauthAccess exchanges a code or a refresh token; each of them works once.
func oauthAccess(c *call) (reply, error) {
	switch {
	case c.args.text("client_id") != c.s.opts.ClientID:
		return nil, failure{code: "invalid_client_id"}
	case c.args.text("client_secret") != c.s.opts.ClientSecret:
		return nil, failure{code: "bad_client_secret"}
	case c.args.text("grant_type") == "refresh_token":
		value := c.args.text("refresh_token")
		old := c.s.refreshes[value]
		if old == nil {
			return nil, failure{code: "invalid_refresh_token"}
		}
		delete(c.s.refreshes, value)
		next := c.s.addToken(botToken, old.user)
		next.org = old.org
		return c.s.grantToken(next, old.user.ws), nil
	}
	code := c.s.codes[c.args.text("code")]
	switch {
	case code == nil || !c.s.opts.Now().Before(code.expires):
		return nil, failure{code: "invalid_code"}
	case code.redirect != c.args.text("redirect_uri"):
		return nil, failure{code: "bad_redirect_uri"}
	}
	delete(c.s.codes, c.args.text("code"))
	answer := c.s.grantToken(code.ws.installBot(code.org), code.ws)
	answer["authed_user"] = reply{"id": code.user.ID}
	return answer, nil
}

// grantToken is the answer with a new bot token.
func (s *Server) grantToken(t *token, ws *Workspace) reply {
	r := reply{"access_token": t.value, "token_type": "bot", "scope": strings.Join(t.scopes, ","), "bot_user_id": t.user.ID, "app_id": s.opts.AppID,
		"team": reply{"id": ws.ID, "name": ws.Name}, "enterprise": nil, "is_enterprise_install": false}
	if ws.EnterpriseID != "" {
		r["enterprise"] = reply{"id": ws.EnterpriseID, "name": ws.EnterpriseID}
	}
	if t.org != "" {
		r["team"], r["is_enterprise_install"] = nil, true
	}
	if s.opts.RotateTokens {
		t.expires = s.opts.Now().Add(s.opts.TokenLife)
		refresh := strings.ToLower(s.newID("xoxe-1-"))
		s.refreshes[refresh] = t
		r["refresh_token"], r["expires_in"] = refresh, int(s.opts.TokenLife.Seconds())
	}
	return r
}
