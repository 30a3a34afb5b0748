package browser_test

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

// site is a page of another origin with the widget's tag, and what gives its visitors their tokens: the first
// as the address says (life), the next ones good. The attributes of the tag and the page's language are in the
// address, too.
var site = template.Must(template.New("site").Parse(`<!doctype html><html lang="{{.Lang}}"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Fieldnote Sensors</title><style>body{font:16px/1.6 Georgia,serif;margin:48px;color-scheme:light dark}</style>
<main><h1>Calibrating a pressure probe</h1><p>A new probe is within two per cent of the true value.</p></main>
<script>
var e = 'of the page', asked = 0
function visitorToken() { return fetch('/token?life=' + (asked++ ? '300' : '{{.Life}}')).then(r => r.text()) }
</script>
<script src="{{.Bobbin}}widget.js" data-title="{{.Title}}" data-greeting="{{.Greeting}}" data-accent="{{.Accent}}" data-side="{{.Side}}" data-agent="{{.Agent}}" data-token-function="{{.Function}}"></script>
`))

// newSite starts a site. at is Bobbin's address, which is known later.
func newSite(t *testing.T, signer *jwttest.Signer, at *string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value := func(name, otherwise string) string {
			if r.URL.Query().Has(name) {
				return r.URL.Query().Get(name)
			}
			return otherwise
		}
		if r.URL.Path == "/token" {
			life, _ := time.ParseDuration(value("life", "300") + "s")
			_, _ = w.Write([]byte(signer.Token(t, jwttest.Claims("ada", map[string]any{"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(life).Unix()}), nil)))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = site.Execute(w, map[string]string{
			"Bobbin": *at, "Lang": value("lang", "en"), "Life": value("life", "300"), "Accent": value("accent", ""), "Side": value("side", ""), "Agent": value("agent", ""), "Function": value("function", "visitorToken"),
			"Title": value("title", "Fieldnote support"), "Greeting": value("greeting", "Ask about probes, gauges and their calibration."),
		})
	}))
	t.Cleanup(server.Close)
	return server
}

// newWidget starts a Bobbin whose end users have tokens, and two sites: it lets the first one show the widget.
func newWidget(t *testing.T) (b *bobbin, args map[string]any) {
	t.Helper()
	var at string
	signer := jwttest.NewSigner(t, "1", "EdDSA")
	allowed, foreign := newSite(t, signer, &at), newSite(t, signer, &at)
	keys := filepath.Join(t.TempDir(), "jwks.json")
	must.Do(t, os.WriteFile(keys, jwttest.JWKS(t, signer), 0o600))
	b = newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), keys: true, settings: fmt.Sprintf(
		"auth.jwt: {jwks_file: %q, issuer: %q, audience: %s, owner: alice}\nserver.widget_origins: [%q]\n", keys, jwttest.Issuer, jwttest.Audience, allowed.URL)})
	at = b.URL
	return b, map[string]any{"url": allowed.URL + "/", "bobbin": b.URL, "foreign": foreign.URL + "/", "key": aliceKey}
}

// widgetCases is what visitors of a site of another origin do in its bubble, and what nobody may.
func widgetCases() []string {
	return []string{"talk", "refused", "messages", "written", "waits", "hostile", "away", "look", "audit"}
}

func TestWidget(t *testing.T) {
	t.Parallel()
	b, args := newWidget(t)
	for _, name := range apptest.ChooseSize(widgetCases()[:1], widgetCases()) {
		t.Run(name, func(t *testing.T) {
			var got struct{ Payloads int }
			b.play(t, "widget", name, args, &got)
			if got.Payloads > 0 {
				t.Logf("%d hostile texts in the widget, of which none ran or asked another origin for anything", got.Payloads)
			}
		})
	}
}
