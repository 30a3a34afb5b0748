package browser_test

import (
	"fmt"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// TestPage has the tests that one Bobbin serves for. They run one after the other: some cut its connections.
func TestPage(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), window: 200_000, settings: "webhooks: {allow_private: true}\n"})
	for _, part := range []struct {
		name string
		test func(*testing.T, *bobbin)
	}{
		{"size", testSize},
		{"chat", func(t *testing.T, b *bobbin) { chatCases().play(t, b, "chat") }},
		{"written", func(t *testing.T, b *bobbin) { writtenCases().play(t, b, "written") }},
		{"thread", func(t *testing.T, b *bobbin) { threadCases().play(t, b, "thread") }},
		{"access", testAccess},
		{"context", testContext},
		{"runs", func(t *testing.T, b *bobbin) { runCases().play(t, b, "runs") }},
		{"operation", func(t *testing.T, b *bobbin) { operationCases().play(t, b, "operation") }},
		{"cuts", testCuts},
		{"failures", testFailures},
		{"hostile", testHostileText},
		{"language", testLanguage},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, b) })
	}
}

// cases are those of a flow by when they run: CI has one of each thing that a person does.
type cases struct{ always, night []string }

// all returns every case.
func (c cases) all() []string { return slices.Concat(c.always, c.night) }

// play plays the cases that are due.
func (c cases) play(t *testing.T, b *bobbin, flow string) {
	t.Helper()
	for _, name := range apptest.ChooseSize(c.always, c.all()) {
		t.Run(name, func(t *testing.T) { b.play(t, flow, name, nil, nil) })
	}
}

// The page can be used by everybody: axe finds nothing in any state, and every flow goes by keyboard alone.
func testAccess(t *testing.T, b *bobbin) {
	t.Helper()
	cases{always: []string{"keyboard"}, night: []string{"ime"}}.play(t, b, "a11y")
	table := apptest.NewTable("states that axe finds nothing in, by theme and width")
	t.Run("audit", func(t *testing.T) {
		for _, look := range [][2]string{{"light", "wide"}, {"dark", "wide"}, {"light", "phone"}, {"dark", "phone"}} {
			if (look[0] == "dark" || look[1] == "phone") && !apptest.IsLong() {
				continue // at night; the short form looks at both themes in one visit
			}
			t.Run(look[0]+"-"+look[1], func(t *testing.T) {
				var got struct{ States int }
				b.play(t, "a11y", "audit", map[string]any{"theme": look[0], "width": look[1]}, &got)
				table.AddRow(look[0], look[1], got.States)
			})
		}
	})
	if !t.Failed() {
		table.Log(t)
	}
}

// chatCases is a person's day: writes, reads while it is written, stops, edits, comes back, finds, approves.
func chatCases() cases {
	return cases{
		always: []string{"day"},
		night:  []string{"send", "stop", "edit", "approve", "failed", "stream", "thoughts", "drafts", "list", "elsewhere", "search", "away"},
	}
}

// writtenCases is about what a person types: it is not lost, doubled, or in another place.
func writtenCases() cases {
	return cases{always: []string{"places"}, night: []string{"tabs", "broken", "first", "queue", "upload"}}
}

// threadCases is about long use: one stop for Tab, old failures, and conversations that others delete.
func threadCases() cases {
	return cases{night: []string{"stops", "rename", "agent", "old", "late", "far", "edge", "meanwhile", "deleted", "words"}}
}

// TestChatOnPostgreSQL runs at night: the databases differ below the API, where each has its tests.
func TestChatOnPostgreSQL(t *testing.T) {
	t.Parallel()
	if !apptest.IsLong() {
		t.Skip("at night")
	}
	chatCases().play(t, newBobbin(t, setup{database: dbtest.MigratedPostgresURL(t)}), "chat")
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), keys: true})
	args := map[string]any{"key": aliceKey, "other": robinKey}
	b.play(t, "chat", "signin", args, nil)
	if apptest.IsLong() {
		b.play(t, "written", "keyed", args, nil)
	}
}

// The thread of Slack beside a conversation; a fake Slack is the other side.
func TestSlackPanel(t *testing.T) {
	t.Parallel()
	b, link := newBobbinInSlack(t)
	b.play(t, "slack", "slack", map[string]any{"link": link}, nil)
}

// newBobbinInSlack starts a Bobbin that is an app of a fake Slack, and returns a link to a message there.
func newBobbinInSlack(t *testing.T) (b *bobbin, link string) {
	t.Helper()
	slack := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = slack.Close() })
	workspace := slack.AddWorkspace("acme")
	token := workspace.Install()
	workspace.AddChannel("C0IMPORTS", "data-imports")
	first := must.Get(workspace.AddUser("Ann", "").Post("C0IMPORTS", "Why is the nightly import slow?"))(t)
	b = newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), slack: slack, token: token})
	return b, "https://acme.slack.com/archives/C0IMPORTS/p" + strings.ReplaceAll(first, ".", "")
}

// What the meter, the panel, the line and the chart say is what the API says, after every turn.
func testContext(t *testing.T, b *bobbin) {
	t.Helper()
	b.play(t, "context", "summary", nil, nil)
	b.play(t, "context", "drafts", nil, nil)
	var got struct{ Turns, Summaries int }
	b.play(t, "context", "turns", map[string]any{"turns": apptest.ChooseSize(3, 60)}, &got)
	if apptest.IsLong() && got.Summaries < 3 {
		t.Errorf("got %d summaries, want at least 3", got.Summaries)
	}
	if !t.Failed() {
		table := apptest.NewTable("the page against the API")
		table.AddRow("turns", got.Turns)
		table.AddRow("summaries", got.Summaries)
		table.AddRow("differences", 0)
		table.Log(t)
	}
}

// runCases is a run step by step, as the API has it; at night the states that are rare, and the exact prompt.
func runCases() cases {
	return cases{always: []string{"steps"}, night: []string{"states", "prompt"}}
}

func operationCases() cases {
	return cases{always: []string{"operation", "deliveries", "refused", "docs"}}
}

// What fails is said in its place and in words, nothing that was written is lost, and the page goes on.
func testFailures(t *testing.T, b *bobbin) {
	t.Helper()
	cases{always: []string{"refusals", "forbidden", "stream", "parts"}, night: []string{"asides", "list", "loading", "resync", "order", "escape", "files", "copies", "line"}}.play(t, b, "failures")
	if apptest.IsLong() {
		t.Run("prefix", func(t *testing.T) { b.play(t, "failures", "prefix", map[string]any{"url": newPrefix(t, b.URL)}, nil) })
	}
}

// newPrefix starts a proxy that has a Bobbin below a path, and returns its address.
func newPrefix(t *testing.T, target string) string {
	t.Helper()
	to := must.Get(url.Parse(target))(t)
	server := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Path = strings.TrimPrefix(r.In.URL.Path, "/tools/bobbin")
		r.SetURL(to)
		r.Out.Host = r.In.Host // with which the page's origin is Bobbin's own
	}})
	t.Cleanup(server.Close)
	return server.URL + "/tools/bobbin/"
}

// Hostile text in any place of the page runs nothing and asks no other origin.
func testHostileText(t *testing.T, b *bobbin) {
	t.Helper()
	table := apptest.NewTable("hostile texts in each place, of which none ran or asked another origin for anything")
	for _, place := range []struct {
		name  string
		short int // texts; 0 = at night
	}{{"watch", 1}, {"code", 1}, {"thread", 48}, {"names", 20}, {"summary", 20}, {"rooms", 0}, {"shapes", 0}, {"long", 0}} {
		if place.short == 0 && !apptest.IsLong() {
			continue
		}
		t.Run(place.name, func(t *testing.T) {
			var got struct{ Payloads int }
			b.play(t, "xss", place.name, map[string]any{"payloads": apptest.ChooseSize(place.short, 300)}, &got)
			table.AddRow(place.name, got.Payloads)
		})
	}
	if !t.Failed() {
		table.Log(t)
	}
}

// The page is in German for who wants it: no English text of the catalog is left.
func testLanguage(t *testing.T, b *bobbin) {
	t.Helper()
	b.play(t, "language", "choice", nil, nil)
	if apptest.IsLong() {
		b.play(t, "language", "german", nil, nil)
	}
}

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
