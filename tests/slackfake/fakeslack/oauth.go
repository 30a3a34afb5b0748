package fakeslack

import (
	"context"
	"errors"
	"fmt"
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
	user     *User // who installed
	redirect string
	expires  time.Time
}

// Approve installs the app as a user would who opens the address of the installation and
// allows it: the redirect goes to the app with a code and the cookies of the browser. It returns
// the app's answer.
func (u *User) Approve(ctx context.Context, authorizeURL string, cookies ...*http.Cookie) (status int, body string, err error) {
	address, err := url.Parse(authorizeURL)
	if err != nil {
		return 0, "", fmt.Errorf("read the address of the installation: %w", err)
	}
	target, err := u.ws.server.approveInstall(address.Query(), u.ws.ID, u.ID)
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

// approveInstall creates a code for a workspace, and returns where to send the
// browser. Without a user it is the first one there. It takes mu.
func (s *Server) approveInstall(query url.Values, where, user string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ws := findFirst(s.workspaces, func(w *Workspace) bool { return w.ID == where })
	redirect, err := url.Parse(firstOf(query.Get("redirect_uri"), s.urls.Redirect))
	switch {
	case query.Get("client_id") != clientID:
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
	s.codes[code] = &authCode{ws: ws, user: installer, redirect: query.Get("redirect_uri"), expires: s.opts.Now().Add(codeLife)}
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
	case code == nil || !c.s.opts.Now().Before(code.expires):
		return nil, failure{code: "invalid_code"}
	case code.redirect != c.args.text("redirect_uri"):
		return nil, failure{code: "bad_redirect_uri"}
	}
	delete(c.s.codes, c.args.text("code"))
	t := code.ws.installBot()
	return reply{"access_token": t.value, "token_type": "bot", "scope": strings.Join(scopes(), ","), "bot_user_id": t.user.ID, "app_id": appID,
		"team": reply{"id": code.ws.ID, "name": code.ws.Name}, "enterprise": nil, "is_enterprise_install": false, "authed_user": reply{"id": code.user.ID}}, nil
}
