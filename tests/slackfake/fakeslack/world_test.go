package fakeslack_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"

	"bobbin/tests/slackfake/fakeslack"
)

// world is a fake Slack with a workspace, a channel, a user, and an app that receives what
// Slack sends.
type world struct {
	*fakeslack.Server
	ws      *fakeslack.Workspace
	general *fakeslack.Channel
	alice   *fakeslack.User
	client  *slack.Client // of the app
	app     *app
}

func newWorld(t *testing.T, opts fakeslack.Options) *world {
	t.Helper()
	if opts.RetryDelays == nil {
		opts.RetryDelays = []time.Duration{0, 0, 0}
	}
	if opts.AckTimeout == 0 {
		opts.AckTimeout = time.Minute // the machine may be busy
	}
	s, err := fakeslack.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &world{Server: s, ws: s.AddWorkspace("acme"), app: newApp(t)}
	w.general, w.alice = w.ws.AddChannel("C1", "general"), w.ws.AddUser("Alice", "alice@example.org")
	w.client = slack.New(w.ws.Install(), slack.OptionAPIURL(s.APIURL()))
	s.SetURLs(fakeslack.URLsBelow(w.app.URL))
	return w
}

// say posts a message of Alice and returns its ts.
func (w *world) say(t *testing.T, text string) string {
	t.Helper()
	ts, err := w.alice.Post(w.general.ID, text)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// delivered waits until the app has all events, and returns them.
func (w *world) delivered(t *testing.T) []received {
	t.Helper()
	if err := w.WaitDelivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.app.list()
}

// received is a request that the app got.
type received struct {
	path   string
	header http.Header
	id     string // event_id
	event  slackevents.EventsAPIEvent
	inner  map[string]any // the event as it came
	form   url.Values
}

// app receives requests, verifies their signatures and reads them with slack-go.
type app struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	answer func(received) (status int, body string) // nil: 200
}

func newApp(t *testing.T) *app {
	t.Helper()
	a := &app{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if err := verify(r.Header, body); err != nil {
			t.Errorf("%s: the signature is refused: %v", r.URL.Path, err)
		}
		got := received{path: r.URL.Path, header: r.Header}
		if r.Header.Get("Content-Type") == "application/json" {
			got.readEvent(t, body)
			if got.event.Type == slackevents.URLVerification {
				_, _ = w.Write(body) // it has the challenge
				return
			}
		} else if got.form, err = url.ParseQuery(string(body)); err != nil {
			t.Error(err)
		}
		status, answer := a.add(got)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(a.Close)
	return a
}

func verify(header http.Header, body []byte) error {
	verifier, err := slack.NewSecretsVerifier(header, "signing-secret")
	if err != nil {
		return err
	}
	if _, err := verifier.Write(body); err != nil {
		return err
	}
	return verifier.Ensure()
}

func (r *received) readEvent(t *testing.T, body []byte) {
	var err error
	if r.event, err = slackevents.ParseEvent(body, slackevents.OptionNoVerifyToken()); err != nil {
		t.Errorf("slack-go cannot read %s: %v", body, err)
	}
	var envelope struct {
		ID    string         `json:"event_id"`
		Event map[string]any `json:"event"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Error(err)
	}
	r.id, r.inner = envelope.ID, envelope.Event
}

func (a *app) add(r received) (int, string) {
	a.mu.Lock()
	a.got = append(a.got, r)
	answer := a.answer
	a.mu.Unlock()
	if answer == nil {
		return http.StatusOK, ""
	}
	return answer(r)
}

func (a *app) list() []received {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]received(nil), a.got...)
}

// types returns the types of events, with their subtypes.
func types(list []received) []string {
	names := []string{}
	for _, r := range list {
		name, _ := r.inner["type"].(string)
		if subtype, _ := r.inner["subtype"].(string); subtype != "" {
			name += "." + subtype
		}
		names = append(names, name)
	}
	return names
}

// clock is a time that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
