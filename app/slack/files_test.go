package slack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// withAPI returns a workspace whose Web API is at the address.
func withAPI(address string) *workspace {
	settings := config.Slack{APIURL: address}
	return &workspace{New(Options{Settings: settings, Logger: slog.New(slog.DiscardHandler)}), newClient(settings, "xoxb-hush"), "T1"}
}

// The token goes to Slack alone: not to other hosts, named by the file or by a redirect.
func TestDownload(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another host was asked for %s", r.URL) }))
	t.Cleanup(elsewhere.Close)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/unsigned", http.StatusFound)
		case "/unsigned":
			fmt.Fprintf(w, "token %q", r.Header.Get("Authorization"))
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/login":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(files.Close)
	s := withAPI(files.URL + "/api/")
	for name, c := range map[string]struct {
		file file
		want string
		err  error // nil with a want; else its kind
	}{
		"a file":              {file{Download: files.URL + "/a"}, "Bearer xoxb-hush", nil},
		"its other address":   {file{Private: files.URL + "/a"}, "Bearer xoxb-hush", nil},
		"moved":               {file{Download: files.URL + "/moved"}, `token ""`, nil},
		"moved elsewhere":     {file{Download: files.URL + "/away"}, "", core.ErrUnprocessable},
		"elsewhere":           {file{Download: elsewhere.URL + "/a"}, "", core.ErrUnprocessable},
		"with a password":     {file{Download: strings.Replace(files.URL, "//", "//me:pass@", 1)}, "", core.ErrUnprocessable},
		"a login page":        {file{Download: files.URL + "/login", Mimetype: "image/png"}, "", core.ErrUnprocessable},
		"gone":                {file{Download: files.URL + "/gone"}, "", core.ErrUnprocessable},
		"busy":                {file{Download: files.URL + "/busy"}, "", errors.ErrUnsupported},
		"too large, as told":  {file{Download: files.URL + "/a", Size: 101}, "", core.ErrTooLarge},
		"without any address": {file{}, "", core.ErrUnprocessable},
	} {
		data, err := s.download(t.Context(), c.file, 100)
		switch {
		case c.want != "" && (err != nil || string(data) != c.want):
			t.Errorf("%s: got %q, %v, want %q", name, data, err, c.want)
		case errors.Is(c.err, errors.ErrUnsupported) && (err == nil || isFinal(err)):
			t.Errorf("%s: got %v, want an error after which it is tried again", name, err)
		case c.want == "" && !errors.Is(c.err, errors.ErrUnsupported) && !errors.Is(err, c.err):
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
	}
	compare.Error(t, "larger than it was said to be", core.ErrTooLarge, compare.ErrorOf(s.download(t.Context(), file{Download: files.URL + "/a"}, 3)))
	slack := withAPI("https://slack.com/api/")
	for _, address := range []string{"http://files.slack.com/a", "https://files.slack.com:8443/a", "https://slack.com.evil.example/a", files.URL + "/a", "file:///etc/passwd"} {
		compare.Error(t, address+": want it refused", core.ErrUnprocessable, compare.ErrorOf(slack.download(t.Context(), file{Download: address}, 100)))
	}
}

// Of a long thread the first message and the newest ones are read, of one that Slack does not give
// whole what it gave. A message of nobody is where others are missing.
func TestReadThread(t *testing.T) {
	t.Parallel()
	const gap = "[Messages of this thread are missing here"
	for name, c := range map[string]struct {
		replies, page int
		fault         []fakeslack.Fault
		attempt       int
		want          string // texts of the first three and the last one, and their number; empty = an error
	}{
		"short":              {2, 2, nil, 1, "root, reply 1, reply 2 … reply 2: 3"},
		"long":               {1200, 999, nil, 1, "root, " + gap + ", reply 1002 … reply 1200: 201"},
		"too long":           {60, 2, nil, 1, "root, reply 1, reply 2 … " + gap + ": 41"},
		"one page":           {40, 15, []fakeslack.Fault{{Times: 1}, {RetryAfter: time.Minute}}, 1, "root, reply 1, reply 2 … " + gap + ": 16"},
		"no page":            {2, 15, []fakeslack.Fault{{RetryAfter: time.Minute}}, 1, ""},
		"no page even later": {2, 15, []fakeslack.Fault{{RetryAfter: time.Minute}}, 3, gap + " … " + gap + ": 1"},
		"no scope":           {2, 15, []fakeslack.Fault{{Error: "missing_scope"}}, 1, " … : 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := must.Get(fakeslack.New(fakeslack.Options{PageLimit: c.page}))(t)
			t.Cleanup(func() { _ = fake.Close() })
			team := fake.AddWorkspace("acme")
			channel, alice := team.AddChannel("C1", "pumps").ID, team.AddUser("Alice", "")
			root, err := alice.Post(channel, "root")
			for i := 1; i <= c.replies && err == nil; i++ {
				_, err = alice.Reply(channel, root, fmt.Sprintf("reply %d", i))
			}
			must.Do(t, err)
			token := team.Install()
			for _, f := range c.fault {
				fake.Inject(f)
			}
			s := &workspace{Service: &Service{Options: Options{Logger: slog.New(slog.DiscardHandler)}}, api: newClient(config.Slack{APIURL: fake.APIURL()}, token)}
			got, err := s.readThread(t.Context(), incoming{event: event{Channel: channel, Thread: root}, attempt: c.attempt}, slackapi.GetConversationRepliesParameters{})
			if (err != nil) != (c.want == "") {
				t.Fatalf("got %d messages and the error %v, want %q", len(got), err, c.want)
			}
			if err != nil {
				return
			}
			var texts []string
			for _, ev := range got {
				text, _, _ := strings.Cut(ev.Text, ":")
				texts = append(texts, text)
			}
			last := ""
			if len(texts) > 0 {
				last = texts[len(texts)-1]
			}
			compare.Equal(t, "shown", c.want, fmt.Sprintf("%s … %s: %d", strings.Join(texts[:min(3, len(texts))], ", "), last, len(texts)))
		})
	}
}

// An item that fails is given up after an hour, and immediately if it can never succeed. One that
// waits for a run to end is not: a run may wait for a person for weeks.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		age    time.Duration
		wait   time.Duration
		giveUp bool
	}{
		"a run is active":           {errRunning, 0, runWait, false},
		"a run waits for weeks":     {errRunning, 30 * 24 * time.Hour, maxRetry, false},
		"an error":                  {errors.New("no connection"), 0, minRetry, false},
		"an error for two hours":    {errors.New("no connection"), 2 * time.Hour, minRetry, true},
		"an error that will remain": {core.Errorf(core.ErrInvalid, "too long"), 0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wait, giveUp := retryAfter(c.err, core.SlackItem{Attempts: 1, CreatedAt: time.Now().Add(-c.age)})
			compare.Equal(t, "wait, given up", []any{c.wait, c.giveUp}, []any{wait, giveUp})
		})
	}
}

// A bot token that does not work is an error in the log from the start.
func TestCheckToken(t *testing.T) {
	t.Parallel()
	fake := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = fake.Close() })
	for token, want := range map[string]string{fake.AddWorkspace("acme").Install(): "", "xoxb-wrong": "level=ERROR"} {
		var logged strings.Builder
		log := slog.New(slog.NewTextHandler(&logged, nil))
		settings := config.Slack{BotToken: config.NewSecret(token), APIURL: fake.APIURL()}
		clients := must.Get(NewClients(settings, nil))(t)
		New(Options{Settings: settings, Clients: clients, Logger: log}).checkToken(t.Context())
		got := logged.String()
		compare.True(t, strings.Contains(got, want) && (want != "" || got == ""), "%s: got %q, want %q", token, got, want)
	}
}

// logWriter is a log that calls wrote after each line.
type logWriter struct {
	strings.Builder

	wrote func()
}

func (w *logWriter) Write(p []byte) (int, error) {
	defer w.wrote()
	return w.Builder.Write(p)
}

// An app token that Slack refuses is an error in the log.
func TestAppTokenIsRefused(t *testing.T) {
	t.Parallel()
	fake := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = fake.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	logged := &logWriter{wrote: cancel}
	settings := config.Slack{AppToken: config.NewSecret("xapp-wrong"), APIURL: fake.APIURL()}
	New(Options{Settings: settings, Logger: slog.New(slog.NewTextHandler(logged, nil))}).readSockets(ctx)
	compare.Contains(t, "the log", `level=ERROR msg="slack.app_token is refused`, logged.String())
}
