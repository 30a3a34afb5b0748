package slack

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// The paths of the installation.
const (
	InstallPath  = "/slack/install"
	CallbackPath = "/slack/oauth/callback"
)

const (
	installTime   = 10 * time.Minute // until Slack sends the browser back
	installCookie = "__Host-bobbin_slack_install"
	maxInstallArg = 1000 // bytes of a parameter of the callback
)

// serveCallback installs the app for a browser that Slack sends back.
func (s *Service) serveCallback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*apiTime)
	defer cancel()
	setInstallCookie(w, "", -1)
	i, err := s.install(ctx, r)
	var shown *core.Error
	switch {
	case err == nil:
		s.Logger.InfoContext(ctx, "app installed in Slack", "team", i.Team, "scopes", i.Scopes)
		writePage(w, http.StatusOK, fmt.Sprintf("Bobbin is installed in %s. Invite the bot to a channel and mention it, or write to it directly.", cmp.Or(cleanName(i.Name), i.Team)))
	case errors.As(err, &shown) && errors.Is(err, core.ErrInvalid):
		writePage(w, http.StatusBadRequest, shown.Message)
	case errors.As(err, &shown) && errors.Is(err, core.ErrForbidden):
		writePage(w, http.StatusForbidden, shown.Message)
	default:
		s.Logger.ErrorContext(ctx, "app not installed in Slack", "err", err)
		writePage(w, http.StatusBadGateway, "Bobbin is not installed: something went wrong, and the log of Bobbin says what. Begin again at "+InstallPath+".")
	}
}

// serveInstall sends the browser to Slack. The state is sealed for a secret that only this
// browser has.
func (s *Service) serveInstall(w http.ResponseWriter, r *http.Request) {
	browser := rand.Text()
	address, _ := url.Parse(apiAddress(s.Settings)) // it is checked with the settings
	until := strconv.FormatInt(time.Now().Add(installTime).Unix(), 10)
	address.Path, address.RawQuery = "/oauth/v2/authorize", url.Values{
		"client_id": {s.Settings.ClientID}, "scope": {strings.Join(neededScopes(s.Settings.LinkByEmail), ",")},
		"state": {base64.RawURLEncoding.EncodeToString(s.Clients.vault.seal(stateName(browser), []byte(until)))},
	}.Encode()
	setInstallCookie(w, browser, int(installTime.Seconds()))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, address.String(), http.StatusFound)
}

// stateName is the name for which the state of an installation is sealed.
func stateName(browser string) string { return "slack_install/" + browser }

func setInstallCookie(w http.ResponseWriter, value string, life int) {
	http.SetCookie(w, &http.Cookie{Name: installCookie, Value: value, Path: "/", MaxAge: life, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

func writePage(w http.ResponseWriter, status int, text string) {
	for name, value := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
	} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, "<!doctype html><html lang=en><meta charset=utf-8><title>Bobbin</title><h1>Bobbin in Slack</h1><p>%s</p></html>\n", html.EscapeString(text))
}

// install exchanges the code of a callback, and stores the installation.
func (s *Service) install(ctx context.Context, r *http.Request) (core.SlackInstallation, error) {
	query := r.URL.Query()
	if err := s.takeState(ctx, r, query.Get("state")); err != nil {
		return core.SlackInstallation{}, err
	}
	code := query.Get("code")
	if code == "" || len(code) > maxInstallArg {
		return core.SlackInstallation{}, core.Errorf(core.ErrInvalid, "Bobbin is not installed: Slack did not allow it, or it was canceled there.")
	}
	answer, err := slackapi.GetOAuthV2ResponseContext(ctx, &http.Client{Timeout: apiTime}, s.Settings.ClientID, s.Settings.ClientSecret.Reveal(), code, "",
		slackapi.OAuthOptionAPIURL(apiAddress(s.Settings)))
	if err != nil {
		return core.SlackInstallation{}, fmt.Errorf("oauth.v2.access: %w", err)
	}
	i := core.SlackInstallation{
		Team: answer.Team.ID, Name: answer.Team.Name, App: answer.AppID, BotUser: answer.BotUserID, Owner: s.Settings.Owner, Scopes: answer.Scope,
		State: core.SlackInstalled, CreatedAt: core.Now(), UpdatedAt: core.Now(),
	}
	allowed := s.Settings.Teams
	switch {
	case answer.IsEnterpriseInstall:
		return i, core.Errorf(core.ErrInvalid, "Bobbin is not installed: it cannot be installed for a whole organization. Install it in each workspace.")
	case answer.ExpiresIn > 0:
		return i, core.Errorf(core.ErrInvalid, "Bobbin is not installed: tokens of this Slack app expire. Create an app with token rotation off.")
	case len(allowed) > 0 && !slices.Contains(allowed, i.Team):
		return i, core.Errorf(core.ErrForbidden, "Bobbin is not installed: its setting slack.teams does not name this workspace, %s.", i.Team)
	case i.Team == "" || !safeIDs(i.Team):
		return i, errors.New("oauth.v2.access: Slack does not say which workspace it is")
	case answer.AccessToken == "":
		return i, errors.New("oauth.v2.access: Slack gave no bot token")
	}
	i.Tokens = s.Clients.vault.seal(tokensName(i.Team), []byte(answer.AccessToken))
	if err := s.Clients.store.Save(ctx, i); err != nil {
		return i, err
	}
	s.Clients.forget(i.Team)
	return i, nil
}

// takeState checks the state of a callback: sealed for this browser, at most ten minutes ago, and
// used for the first time.
func (s *Service) takeState(ctx context.Context, r *http.Request, state string) error {
	refused := core.Errorf(core.ErrInvalid, "This link is too old, was used already, or was opened in another browser. Begin again at %s.", InstallPath)
	cookie, err := r.Cookie(installCookie)
	if err != nil || len(state) > maxInstallArg {
		return refused
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return refused
	}
	text, err := s.Clients.vault.open(stateName(cookie.Value), sealed)
	if err != nil {
		return refused
	}
	if until, err := strconv.ParseInt(string(text), 10, 64); err != nil || time.Now().Unix() > until {
		return refused
	}
	first, err := s.Inbox.Add(ctx, newItem(s.Settings.Owner, s.Settings.ClientID, "oauth/"+core.SecretHash(state), core.SlackOAuthState, nil))
	if err == nil && !first {
		return refused
	}
	return err
}

// handleRemoval marks the installation of a workspace revoked once its token does not work. The
// event may be late, or about other tokens.
func (s *Service) handleRemoval(ctx context.Context, kind, team string) error {
	s.Clients.forget(team)
	if !s.Settings.OAuth() {
		s.Logger.ErrorContext(ctx, "app removed from Slack, or its tokens revoked; install it again, and set slack.bot_token", "event", kind)
		return nil
	}
	i, err := s.Clients.find(ctx, team)
	if err != nil {
		return err
	}
	_, err = s.Clients.of(ctx, team)
	if !isAnswer(err, "account_inactive", "invalid_auth", "token_revoked") {
		return err
	}
	if err := s.Clients.store.Revoke(ctx, i); err != nil {
		return err
	}
	s.Logger.WarnContext(ctx, "app removed from a workspace of Slack, or its tokens revoked", "event", kind, "team", i.Team)
	return nil
}
