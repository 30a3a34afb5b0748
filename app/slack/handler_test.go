package slack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/slack"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

const signingSecret = "8f742231b10e8888abcd99yyyzzz85a5" // of Slack's documentation

// counted counts what Slack sent.
type counted struct {
	core.NoObserver

	mu   sync.Mutex
	seen map[string]int // guarded by mu
}

func (c *counted) Count(_ core.Counter, n int, labels ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[strings.Join(labels, " ")] += n
}

func (c *counted) of(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[what]
}

// newHandler returns what answers Slack, over the database.
func newHandler(d *db.DB, seen *counted) http.Handler {
	return slack.New(slack.Options{
		Settings: config.Slack{BotToken: config.NewSecret("xoxb-1"), SigningSecret: config.NewSecret(signingSecret), Owner: "ann", APIURL: "https://slack.com/api/"},
		Inbox:    repositories.NewSlackInbox(d.Gorm), Worker: "one/1", Observer: seen, Logger: slog.New(slog.DiscardHandler),
	}).Routes()["POST "+slack.EventsPath]
}

// request is a request of Slack.
type request struct {
	path, body, kind string
	at               time.Time
	secret           string
	unsigned         bool
}

// send sends the request, signed now unless it says otherwise.
func send(t *testing.T, h http.Handler, r request) *httptest.ResponseRecorder {
	t.Helper()
	if r.path == "" {
		r.path = slack.EventsPath
	}
	if r.at.IsZero() {
		r.at = time.Now()
	}
	if r.secret == "" {
		r.secret = signingSecret
	}
	if r.kind == "" {
		r.kind = "application/json"
	}
	in := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.path, strings.NewReader(r.body))
	in.Header.Set("Content-Type", r.kind)
	if !r.unsigned {
		ts := strconv.FormatInt(r.at.Unix(), 10)
		in.Header.Set("X-Slack-Request-Timestamp", ts)
		in.Header.Set("X-Slack-Signature", fakeslack.Sign(r.secret, ts, []byte(r.body)))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	return w
}

// eventBody is a request of the Events API for the bot U0BOT.
func eventBody(id, event string) string {
	return fmt.Sprintf(`{"type":"event_callback","api_app_id":"A1","team_id":"T1","event_id":%q,"authorizations":[{"team_id":"T1","user_id":"U0BOT","is_bot":true}],"event":%s}`, id, event)
}

const form = "application/x-www-form-urlencoded"

// What is wrong is refused in the way that makes Slack repeat what can be repeated, and nothing else.
func TestRefusals(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := &counted{}
		h := newHandler(d, seen)
		mention := eventBody("Ev1", `{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"<@U0BOT> hi"}`)
		for name, c := range map[string]struct {
			request

			status int
			body   string
		}{
			"a wrong secret":             {request{body: mention, secret: "another"}, 401, ""},
			"no signature":               {request{body: mention, unsigned: true}, 401, ""},
			"six minutes ago":            {request{body: mention, at: time.Now().Add(-6 * time.Minute)}, 401, ""},
			"in six minutes":             {request{body: mention, at: time.Now().Add(6 * time.Minute)}, 401, ""},
			"more than 4 MiB":            {request{body: strings.Repeat(" ", slack.MaxBody+1)}, 413, ""},
			"not JSON":                   {request{body: "text"}, 400, ""},
			"JSON that is no event":      {request{body: `["event_callback"]`}, 400, ""},
			"a challenge":                {request{body: `{"type":"url_verification","challenge":"c1"}`}, 200, `{"challenge":"c1"}`},
			"a challenge, unsigned":      {request{body: `{"type":"url_verification","challenge":"c1"}`, unsigned: true}, 401, ""},
			"an unknown event":           {request{body: eventBody("Ev2", `{"type":"star_added","item":[1]}`)}, 200, ""},
			"an unknown type":            {request{body: `{"type":"new_thing"}`}, 200, ""},
			"too many events":            {request{body: `{"type":"app_rate_limited","minute_rate_limited":1}`}, 200, ""},
			"a forged id":                {request{body: eventBody("Ev3", `{"type":"app_mention","channel":"C1/2","user":"U1","ts":"1.0\u0000","text":"hi"}`)}, 200, ""},
			"ssl_check":                  {request{path: slack.CommandsPath, kind: form, body: "ssl_check=1&command=%2Fstop&trigger_id=1&user_id=U1", unsigned: true}, 200, ""},
			"ssl_check, signed":          {request{path: slack.CommandsPath, kind: form, body: "ssl_check=1&command=%2Fstop&trigger_id=1&user_id=U1"}, 200, ""},
			"ssl_check with a long body": {request{path: slack.CommandsPath, kind: form, body: "ssl_check=1&x=" + strings.Repeat("x", 8<<10), unsigned: true}, 401, ""},
			"a command without a user":   {request{path: slack.CommandsPath, kind: form, body: "command=%2Fstop"}, 400, ""},
			"a click that is not JSON":   {request{path: slack.InteractionsPath, kind: form, body: "payload=x"}, 400, ""},
			"an unknown interaction":     {request{path: slack.InteractionsPath, kind: form, body: "payload=" + url.QueryEscape(`{"type":"view_closed"}`)}, 200, ""},
		} {
			w := send(t, h, c.request)
			compare.True(t, w.Code == c.status && (c.body == "" || strings.TrimSpace(w.Body.String()) == c.body), "%s: got %d %q, want %d %s", name, w.Code, w.Body, c.status, c.body)
		}
		compare.Equal(t, "items are stored", 0, stored(t, d))
		compare.True(t, seen.of("other ignored") == 2 && seen.of("app_rate_limited ignored") == 1 && seen.of("request refused") != 0, "counted %v", seen.seen)
	})
}

// slowBody is a body of which nothing arrives until its context ends.
type slowBody struct {
	ctx  context.Context
	read func() // called by the first read
}

func (b slowBody) Read([]byte) (int, error) {
	b.read()
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// Requests whose bodies do not arrive, which anybody can send, do not keep Slack's own from being
// stored.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newHandler(d, &counted{})
		ctx, cancel := context.WithCancel(t.Context())
		var begun, ended sync.WaitGroup
		for range 32 { // as many larger ones as are read at the same time
			begun.Add(1)
			in := httptest.NewRequestWithContext(ctx, http.MethodPost, slack.EventsPath, slowBody{ctx, sync.OnceFunc(begun.Done)})
			in.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(time.Now().Unix(), 10))
			in.Header.Set("X-Slack-Signature", "v0=00")
			ended.Go(func() { h.ServeHTTP(httptest.NewRecorder(), in) })
		}
		begun.Wait()
		text := strings.Repeat("x", 100<<10) // larger bodies still find a place
		for _, event := range []string{eventBody("Ev1", `{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"hi"}`), eventBody("Ev2", `{"type":"app_mention","channel":"C1","user":"U1","ts":"2.0","text":"`+text+`"}`)} {
			compare.Equal(t, "beside slow bodies: want 200", http.StatusOK, send(t, h, request{body: event}).Code)
		}
		cancel()
		ended.Wait()
	})
}

func stored(t *testing.T, d *db.DB) (n int) {
	t.Helper()
	must.Do(t, d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM slack_inbox").Scan(&n).Error)
	return n
}

// What a person writes to the bot is stored once; what others write, and what the bot writes
// itself, is not.
func TestIntake(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := &counted{}
		h := newHandler(d, seen)
		n := 0
		add := func(what, event string, more int) {
			t.Helper()
			before := stored(t, d)
			n++
			compare.Equal(t, what, http.StatusOK, send(t, h, request{body: eventBody(fmt.Sprintf("Ev%d", n), event)}).Code)
			compare.Equal(t, what+": items stored", more, stored(t, d)-before)
		}
		add("a mention", `{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"<@U0BOT> hi","client_msg_id":"a"}`, 1)
		add("the same as a message", `{"type":"message","channel":"C1","user":"U1","ts":"1.0","text":"<@U0BOT> hi","client_msg_id":"a"}`, 0)
		add("to others", `{"type":"message","channel":"C1","user":"U1","ts":"2.0","text":"hi <@U2>"}`, 0)
		add("a reply in a thread", `{"type":"message","channel":"C1","user":"U1","ts":"3.0","thread_ts":"1.0","text":"and?"}`, 1)
		add("a reply that is shown in the channel", `{"type":"message","subtype":"thread_broadcast","channel":"C1","user":"U1","ts":"3.1","thread_ts":"1.0","text":"and?"}`, 1)
		add("a file", `{"type":"message","subtype":"file_share","channel":"D1","channel_type":"im","user":"U1","ts":"4.0","text":"","files":[{"id":"F1"}]}`, 1)
		add("somebody joins", `{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","ts":"5.0","text":"<@U0BOT>"}`, 0)
		add("our own message", `{"type":"message","channel":"D1","channel_type":"im","user":"U0BOT","ts":"6.0","text":"hi"}`, 0)
		add("our own message, named otherwise", `{"type":"message","subtype":"bot_message","channel":"D1","channel_type":"im","bot_id":"B1","app_id":"A1","ts":"6.1","text":"hi"}`, 0)
		add("another bot", `{"type":"message","channel":"C1","user":"U9","bot_id":"B9","ts":"7.0","text":"<@U0BOT> hi"}`, 0)
		add("Slackbot", `{"type":"message","channel":"D1","channel_type":"im","user":"USLACKBOT","ts":"8.0","text":"hi"}`, 0)
		add("a preview of a link", `{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9.0","message":{"user":"U1","ts":"1.0","text":"a"},"previous_message":{"user":"U1","ts":"1.0","text":"a"}}`, 0)
		add("an edit", `{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9.05","message":{"user":"U1","ts":"1.0","text":"b","edited":{"user":"U1","ts":"9.0"}},"previous_message":{"user":"U1","ts":"1.0","text":"a"}}`, 1)
		add("a preview of a link after an edit", `{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9.06","message":{"user":"U1","ts":"1.0","text":"b","edited":{"user":"U1","ts":"9.0"}},"previous_message":{"user":"U1","ts":"1.0","text":"b","edited":{"user":"U1","ts":"9.0"}}}`, 0)
		add("text that we stream", `{"type":"message","subtype":"message_changed","channel":"C1","event_ts":"9.1","message":{"user":"U0BOT","bot_id":"B1","app_id":"A1","ts":"1.1","text":"ab","edited":{"ts":"9.0"}},"previous_message":{"ts":"1.1","text":"a"}}`, 0)
		add("a deletion", `{"type":"message","subtype":"message_deleted","channel":"C1","event_ts":"9.2","deleted_ts":"1.0","previous_message":{"user":"U1","ts":"1.0","text":"a"}}`, 1)
		add("a deletion of our own", `{"type":"message","subtype":"message_deleted","channel":"C1","event_ts":"9.3","deleted_ts":"1.1","previous_message":{"bot_id":"B1","app_id":"A1","ts":"1.1","text":"a"}}`, 0)
		add("Slack's stop button", `{"type":"agent_session_stopped","channel":"C1","user":"U1","thread_ts":"1.0","event_ts":"9.4"}`, 1)
		compare.Equal(t, "counted", []any{1, 1}, []any{seen.of("message repeated"), seen.of("app_mention stored")})
	})
}

// Without the database a request is not acknowledged, so that Slack sends it again.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		seen := &counted{}
		h := newHandler(d, seen)
		must.Do(t, d.Close())
		w := send(t, h, request{body: eventBody("Ev1", `{"type":"app_mention","channel":"C1","user":"U1","ts":"1.0","text":"<@U0BOT> hi"}`)})
		compare.True(t, w.Code == http.StatusServiceUnavailable && w.Header().Get("Retry-After") != "" && w.Header().Get("X-Slack-No-Retry") == "", "got %d %v, want 503 and a retry", w.Code, w.Header())
		compare.Equal(t, "failed mentions", 1, seen.of("app_mention failed"))
	})
}

// Each thing that can be wrong with the settings is named, with what to do.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	bobbin := httptest.NewServer(newHandler(dbtest.SQLite(t), &counted{}))
	t.Cleanup(bobbin.Close)
	good := config.Slack{BotToken: config.NewSecret(s.AddWorkspace("acme").Install()), SigningSecret: config.NewSecret(signingSecret), AppToken: config.NewSecret("xapp-1-A0001-1"), APIURL: s.APIURL()}
	wrong := func(change func(*config.Slack)) config.Slack {
		c := good
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg     config.Slack
		address string
		broken  []string
	}{
		"a wrong token":     {wrong(func(c *config.Slack) { c.BotToken = config.NewSecret("xoxb-wrong") }), "", []string{"bot token"}},
		"a wrong app token": {wrong(func(c *config.Slack) { c.AppToken = config.NewSecret("xapp-wrong") }), bobbin.URL, []string{"socket mode"}},
		"a wrong secret":    {wrong(func(c *config.Slack) { c.SigningSecret = config.NewSecret("wrong") }), bobbin.URL, []string{"reach"}},
		"not there":         {good, s.URL, []string{"reach"}},
		"not an address":    {good, "::", []string{"reach"}},
		"fine":              {good, bobbin.URL + "/", nil},
	} {
		var broken []string
		for _, f := range slack.Check(t.Context(), c.cfg, nil, c.address) {
			if f.Do != "" {
				broken = append(broken, f.Check)
			}
			compare.True(t, !strings.Contains(f.Detail+f.Do, signingSecret) && !strings.Contains(f.Detail, "xoxb-"), "%s: %s shows a secret", name, f.Detail)
		}
		compare.Equal(t, name+": broken", c.broken, broken)
	}
}

// With an address the manifest has request URLs, without one it has Socket Mode.
func TestManifest(t *testing.T) {
	t.Parallel()
	for address, urls := range map[string]int{"": 0, "https://bobbin.example.org/": 4} {
		data := must.Get(slack.Manifest(address, true))(t)
		var read struct {
			Settings struct {
				SocketMode bool `json:"socket_mode_enabled"`
			} `json:"settings"`
		}
		must.Do(t, json.Unmarshal(data, &read))
		if got := strings.Count(string(data), `"https://bobbin.example.org/slack/`); got != urls || read.Settings.SocketMode != (urls == 0) || !strings.Contains(string(data), "users:read.email") {
			t.Errorf("%q: got %d request URLs, want %d:\n%s", address, got, urls, data)
		}
	}
}
