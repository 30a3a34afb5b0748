package slack

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/logtext"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// installWorld is a Bobbin that people install in workspaces of a fake Slack.
type installWorld struct {
	*fakeslack.Server

	db      *db.DB
	store   *repositories.SlackInstallations
	service *Service
	url     string
	log     *logtext.Log
	counts  *receivedCounts
}

// receivedCounts counts what Slack sent. Safe for concurrent use.
type receivedCounts struct {
	core.NoObserver

	unknown atomic.Int32
}

func (c *receivedCounts) Count(_ core.Counter, n int, labels ...string) {
	if labels[1] == outcomeUnknown {
		c.unknown.Add(int32(n))
	}
}

func newInstallWorld(t *testing.T, d *db.DB, teams ...string) *installWorld {
	t.Helper()
	s := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	w := &installWorld{Server: s, db: d, store: repositories.NewSlackInstallations(d.Gorm), log: &logtext.Log{}, counts: &receivedCounts{}}
	settings := oauthSettings(s, 'a')
	settings.Teams = teams
	w.service = New(Options{
		Settings: settings, Clients: w.clients(t, settings), Inbox: repositories.NewSlackInbox(d.Gorm), Worker: "one/1", Observer: w.counts,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.service.Routes()[r.Method+" "+r.URL.Path](answer, r)
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	s.SetURLs(fakeslack.URLsBelow(server.URL))
	return w
}

// oauthSettings are settings whose key consists of the letter.
func oauthSettings(s *fakeslack.Server, letter byte) config.Slack {
	return config.Slack{
		ClientID: "1.1", ClientSecret: config.NewSecret("client-secret"), Owner: "ann", APIURL: s.APIURL(),
		TokenKey: config.NewSecret(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{letter}, 32))),
	}
}

func (w *installWorld) clients(t *testing.T, settings config.Slack) *Clients {
	t.Helper()
	return must.Get(NewClients(settings, w.store))(t)
}

// begin opens the page of the installation and returns the address of Slack's, and the cookie.
func (w *installWorld) begin(t *testing.T) (string, *http.Cookie) {
	t.Helper()
	answer := httptest.NewRecorder()
	w.service.Routes()["GET "+InstallPath](answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, InstallPath, nil))
	cookies := answer.Result().Cookies()
	if answer.Code != http.StatusFound || len(cookies) != 1 || !cookies[0].HttpOnly || !cookies[0].Secure || cookies[0].SameSite != http.SameSiteLaxMode {
		t.Fatalf("got %d and the cookies %v", answer.Code, cookies)
	}
	return answer.Header().Get("Location"), cookies[0]
}

// install installs the app in the workspace of a user.
func (w *installWorld) install(t *testing.T, by *fakeslack.User) {
	t.Helper()
	address, cookie := w.begin(t)
	if status, body, err := by.Approve(t.Context(), address, cookie); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s, %v", status, body, err)
	}
}

// callback opens the page to which Slack sends the browser back.
func (w *installWorld) callback(t *testing.T, query url.Values, cookie *http.Cookie) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+CallbackPath+"?"+query.Encode(), nil))(t)
	r.AddCookie(cookie)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(body)
}

// stateOf returns the state in the address of Slack's page.
func stateOf(t *testing.T, address string) string {
	t.Helper()
	return must.Get(url.Parse(address))(t).Query().Get("state")
}

// Only the browser that began an installation ends it, once and within ten minutes. No token is
// readable in the database, in pages or in the log.
func TestInstall(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newInstallWorld(t, d)
		acme := w.AddWorkspace("<b>Acme")
		admin := acme.AddUser("Admin", "")
		address, cookie := w.begin(t)
		_, other := w.begin(t)
		scopes := strings.Join(neededScopes(false), ",")
		compare.True(t, strings.HasPrefix(address, w.URL+"/oauth/v2/authorize?") && strings.Contains(address, url.QueryEscape(scopes)), "got the address %s", address)
		past := strconv.FormatInt(time.Now().Add(-2*time.Second).Unix(), 10)
		old := base64.RawURLEncoding.EncodeToString(w.service.Clients.vault.seal(stateName(cookie.Value), []byte(past)))
		state := stateOf(t, address)
		changed := state[:len(state)-6] + "AAAAAA"
		for name, c := range map[string]struct {
			state  string
			cookie *http.Cookie
		}{
			"no cookie":         {state, &http.Cookie{Name: "x", Value: "y"}},
			"another browser":   {state, other},
			"no state":          {"", cookie},
			"a changed state":   {changed, cookie},
			"an expired state":  {old, cookie},
			"far too long":      {strings.Repeat("a", 5000), cookie},
			"not base64":        {"?", cookie},
			"more than a state": {state + "A", cookie},
		} {
			if status, body := w.callback(t, url.Values{"code": {"c"}, "state": {c.state}}, c.cookie); status != http.StatusBadRequest || !strings.Contains(body, InstallPath) {
				t.Errorf("%s: got %d %s, want 400", name, status, body)
			}
		}
		compare.Equal(t, "calls of Slack", 0, len(w.Calls("oauth.v2.access")))
		status, body, err := admin.Approve(t.Context(), address, cookie)
		if err != nil || status != http.StatusOK || !strings.Contains(body, "&lt;b&gt;Acme") {
			t.Fatalf("got %d %s, %v", status, body, err)
		}
		if status, _ := w.callback(t, url.Values{"code": {"c"}, "state": {state}}, cookie); status != http.StatusBadRequest || len(w.Calls("oauth.v2.access")) != 1 {
			t.Errorf("the same state again: got %d, want 400", status)
		}
		row := must.Get(w.store.Find(t.Context(), acme.ID))(t)
		compare.True(t, row.Owner == "ann" && row.App == "A0001" && row.BotUser == acme.Bot().ID && !bytes.Contains(row.Tokens, []byte("xox")), "got the installation %+v", row)
		api, err := w.service.Clients.of(t.Context(), acme.ID)
		if err != nil || api.me.TeamID != acme.ID {
			t.Fatalf("got %+v, %v", api, err)
		}
		for _, secret := range []string{api.token, "xox", "client-secret", state} {
			compare.True(t, !strings.Contains(w.log.String()+body, secret), "%q is in the log or the page:\n%s\n%s", secret, w.log, body)
		}
	})
}

// What Slack or the settings refuse is said in plain words, and nothing is stored.
func TestInstallRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newInstallWorld(t, d, "T999")
		acme := w.AddWorkspace("Acme")
		address, cookie := w.begin(t)
		if status, body := w.callback(t, url.Values{"error": {"access_denied"}, "state": {stateOf(t, address)}}, cookie); status != http.StatusBadRequest || !strings.Contains(body, "canceled") {
			t.Errorf("canceled: got %d %s", status, body)
		}
		address, cookie = w.begin(t)
		if status, body := w.callback(t, url.Values{"code": {"wrong"}, "state": {stateOf(t, address)}}, cookie); status != http.StatusBadGateway || strings.Contains(body, "invalid_code") || !strings.Contains(w.log.String(), "invalid_code") {
			t.Errorf("a wrong code: got %d %s", status, body)
		}
		address, cookie = w.begin(t)
		if status, body, err := acme.AddUser("Admin", "").Approve(t.Context(), address, cookie); err != nil || status != http.StatusForbidden || !strings.Contains(body, acme.ID) {
			t.Errorf("another workspace: got %d %s, %v", status, body, err)
		}
		for want, answer := range map[string]string{
			"whole organization": `{"ok":true,"access_token":"xoxb-1","is_enterprise_install":true,"enterprise":{"id":"E1"},"team":null}`,
			"tokens":             `{"ok":true,"access_token":"xoxb-1","refresh_token":"xoxe-1","expires_in":43200,"team":{"id":"T999"}}`,
		} {
			slack := httptest.NewServer(http.HandlerFunc(func(answered http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(answered, answer) }))
			t.Cleanup(slack.Close)
			address, cookie = w.begin(t)
			w.service.Settings.APIURL = slack.URL
			if status, body := w.callback(t, url.Values{"code": {"c"}, "state": {stateOf(t, address)}}, cookie); status != http.StatusBadRequest || !strings.Contains(body, want) {
				t.Errorf("%s: got %d %s", want, status, body)
			}
		}
		compare.Equal(t, "len(all): want no installation", 0, len(must.Get(w.store.List(t.Context()))(t)))
	})
}

// Tokens that were sealed with another key, or for another workspace, are not used.
func TestSealedTokens(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newInstallWorld(t, d)
		acme, other := w.AddWorkspace("Acme"), w.AddWorkspace("Other")
		w.install(t, acme.AddUser("Admin", ""))
		w.install(t, other.AddUser("Admin", ""))
		refused := func(what string, settings config.Slack) {
			t.Helper()
			_, err := w.clients(t, settings).of(t.Context(), acme.ID)
			if means, wait := classify(err); !errors.Is(err, errSealed) || means != tryLater || wait != noTokenTime || isFinal(err) {
				t.Errorf("%s: got %v, want errSealed", what, err)
			}
		}
		refused("another key", oauthSettings(w.Server, 'b'))
		a := must.Get(w.store.Find(t.Context(), acme.ID))(t)
		o := must.Get(w.store.Find(t.Context(), other.ID))(t)
		whole := bytes.Clone(a.Tokens)
		for what, stored := range map[string][]byte{"those of another workspace": o.Tokens, "a changed byte": append(whole[:len(whole)-1:len(whole)-1], whole[len(whole)-1]^1), "nothing": nil} {
			a.Tokens = stored
			must.Do(t, w.store.Save(t.Context(), a))
			refused(what, oauthSettings(w.Server, 'a'))
		}
	})
}

// The check tells installations that work from those that do not.
func TestCheckInstallations(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newInstallWorld(t, d)
		settings := oauthSettings(w.Server, 'a')
		check := func(cfg config.Slack, want ...string) {
			t.Helper()
			all := must.Get(w.store.List(t.Context()))(t)
			var got []string
			for _, f := range Check(t.Context(), cfg, all, "") {
				if f.Check != "scopes" && f.Check != "clock" {
					got = append(got, fmt.Sprintf("%s %t", f.Check, f.Do == ""))
				}
			}
			compare.Equal(t, "got", want, got)
		}
		check(settings, "workspaces false")
		acme, other, third := w.AddWorkspace("Acme"), w.AddWorkspace("Other"), w.AddWorkspace("Third")
		for _, ws := range []*fakeslack.Workspace{acme, other, third} {
			w.install(t, ws.AddUser("Admin", ""))
		}
		acme.Uninstall()
		check(settings, "workspace "+acme.ID+" false", "workspace "+other.ID+" true", "workspace "+third.ID+" true")
		must.Do(t, w.service.handleRemoval(t.Context(), eventUninstalled, acme.ID))
		check(settings, "workspace "+acme.ID+" true", "workspace "+other.ID+" true", "workspace "+third.ID+" true")
		check(oauthSettings(w.Server, 'b'), "workspace "+acme.ID+" true", "workspace "+other.ID+" false", "workspace "+third.ID+" false")
	})
}

// An installation ends when Slack says so and its token does not work: a late event, or one about
// other tokens, ends nothing.
func TestRemoval(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newInstallWorld(t, d)
		acme, other := w.AddWorkspace("Acme"), w.AddWorkspace("Other")
		w.install(t, acme.AddUser("Admin", ""))
		w.install(t, other.AddUser("Admin", ""))
		for _, ws := range []*fakeslack.Workspace{acme, other} {
			must.Do(t, w.service.handleRemoval(t.Context(), eventRevoked, ws.ID))
		}
		acme.Uninstall()
		must.Do(t, w.service.handleRemoval(t.Context(), eventUninstalled, acme.ID))
		compare.Error(t, "want errNotInstalled", errNotInstalled, compare.ErrorOf(w.service.Clients.of(t.Context(), acme.ID)))
		compare.Error(t, "the other workspace", nil, compare.ErrorOf(w.service.Clients.of(t.Context(), other.ID)))
		compare.Error(t, "want the installation revoked", core.ErrNotFound, compare.ErrorOf(w.store.Find(t.Context(), acme.ID)))
	})
}

// An event names its installation, or, without authorizations, as the whole request does.
func TestInstallationOfEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want authorization
	}{
		"workspace": {`{"team_id": "T1", "authorizations": [{"enterprise_id": null, "team_id": "T1", "user_id": "U1"}]}`, authorization{Team: "T1", User: "U1"}},
		"shared":    {`{"team_id": "T2", "authorizations": [{"team_id": "T1", "user_id": "U1"}]}`, authorization{Team: "T1", User: "U1"}},
		"removal":   {`{"team_id": "T1", "authorizations": []}`, authorization{Team: "T1"}},
	} {
		var e envelope
		must.Do(t, json.Unmarshal([]byte(c.body), &e))
		compare.Equal(t, name, c.want, e.install())
	}
}
