// Package slackclients_test lets Slack's own clients in Node, at the versions of the lock
// file, talk to the fake Slack: what they and slack-go read in the same way is Slack's.
package slackclients_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// world is a fake Slack with the app in a workspace with a channel and a user.
type world struct {
	*fakeslack.Server
	ws    *fakeslack.Workspace
	alice *fakeslack.User
	token string
}

func newWorld(t *testing.T, opts fakeslack.Options) *world {
	t.Helper()
	s := must.Get(fakeslack.New(opts))(t)
	t.Cleanup(func() { _ = s.Close() })
	ws := s.AddWorkspace("acme")
	ws.AddChannel("C1", "general")
	return &world{Server: s, ws: ws, alice: ws.AddUser("Alice", "alice@example.org"), token: ws.Install()}
}

// script is a client at work in Node.
type script struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Scanner
}

// start starts a script of this folder.
func (w *world) start(t *testing.T, name string, env ...string) *script {
	t.Helper()
	return w.startAt(t, w.APIURL(), name, env...)
}

// startAt is start for another Web API.
func (w *world) startAt(t *testing.T, apiURL, name string, env ...string) *script {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.FindNodeClients(t), name)
	cmd.Env = append(os.Environ(), append([]string{"SLACK_API_URL=" + apiURL, "SLACK_TOKEN=" + w.token}, env...)...)
	cmd.Stderr = t.Output()
	in := must.Get(cmd.StdinPipe())(t)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	must.Do(t, err)
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // killed with the test's context if it does not end by itself
	})
	return &script{t: t, in: in, out: bufio.NewScanner(out)}
}

// read returns the next line of the script.
func (s *script) read() map[string]any {
	s.t.Helper()
	if !s.out.Scan() {
		s.t.Fatalf("the script has ended: %v", s.out.Err())
	}
	var line map[string]any
	if err := json.Unmarshal(s.out.Bytes(), &line); err != nil || line["failed"] != nil {
		s.t.Fatalf("got the line %s, %v", s.out.Bytes(), err)
	}
	return line
}

// expect compares the next lines of the script, in any order.
func (s *script) expect(want ...map[string]any) {
	s.t.Helper()
	var got []map[string]any
	for range want {
		got = append(got, s.read())
	}
	byText := func(a, b map[string]any) int { return strings.Compare(text(a), text(b)) }
	slices.SortFunc(got, byText)
	slices.SortFunc(want, byText)
	compare.Equal(s.t, "the script tells something else", want, got)
}

func text(line map[string]any) string {
	data, _ := json.Marshal(line) // from JSON, so it can be
	return string(data)
}

// An app of @slack/bolt takes our signatures, events, retries, commands, clicks and
// shortcuts, and answers through our Web API.
func TestBolt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{RetryDelays: []time.Duration{0}, AckTimeout: time.Minute})
	s := w.start(t, "bolt.mjs", "SLACK_SIGNING_SECRET=signing-secret")
	port, _ := s.read()["port"].(float64)
	base := "http://127.0.0.1:" + strconv.Itoa(int(port))
	w.SetURLs(fakeslack.URLsBelow(base))
	mention := w.ws.Bot().Mention() + " hello"
	root, err := w.alice.Post("C1", mention)
	must.Do(t, err)
	got := []map[string]any{s.read(), s.read()}
	slices.SortFunc(got, func(a, b map[string]any) int { return len(a) - len(b) })
	question, _ := got[1]["question"].(string)
	if got[0]["message"] != mention || got[1]["mention"] != mention || question == "" {
		t.Fatalf("got %v, want the message and the mention", got)
	}
	thread := w.ws.Thread("C1", root)
	if len(thread) != 3 || thread[1].Markdown() != "**one** two" || thread[1].Stream.Open || thread[1].Stream.Tasks[0].Status != "complete" || w.ws.SessionStatus("C1", root) != "processing" {
		t.Errorf("got %+v, want a stream and a question", thread)
	}
	_, err = w.alice.Command("C1", "/context", "")
	must.Do(t, err)
	s.expect(map[string]any{"command": "/context"})
	if got := w.ws.Ephemerals(w.alice.ID); len(got) != 1 || got[0].Text != "context for alice" {
		t.Errorf("got %+v, want the response for Alice alone", got)
	}
	_, err = w.alice.Click("C1", question, "approve", "")
	must.Do(t, err)
	s.expect(map[string]any{"action": "id-1"})
	_, err = w.alice.Shortcut("C1", root, "show_context")
	must.Do(t, err)
	s.expect(map[string]any{"shortcut": "show_context"})
	must.Do(t, w.WaitDelivered(t.Context()))
	for _, d := range w.Deliveries() {
		if !d.Acknowledged() {
			t.Errorf("got %+v, want it acknowledged", d)
		}
	}
	if status := postSigned(t, base+"/slack/events", "other-secret", time.Now()); status != http.StatusUnauthorized {
		t.Errorf("got %d for a wrong secret, want 401", status)
	}
	if status := postSigned(t, base+"/slack/events", "signing-secret", time.Now().Add(-10*time.Minute)); status != http.StatusUnauthorized {
		t.Errorf("got %d for an old timestamp, want 401", status)
	}
}

// postSigned sends a signed event and returns the status.
func postSigned(t *testing.T, address, secret string, now time.Time) int {
	t.Helper()
	body, timestamp := `{"type":"event_callback"}`, strconv.FormatInt(now.Unix(), 10)
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Slack-Request-Timestamp", timestamp)
	request.Header.Set("X-Slack-Signature", fakeslack.Sign(secret, timestamp, []byte(body)))
	response := must.Get(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// @slack/web-api calls every method that an app and a user need. It waits for a 429, and
// posts again when an answer is lost.
func TestWebAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1, RetryAfter: time.Second})
	w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1}) // the second attempt works
	w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
	codes := make(chan string, 1)
	redirect := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { codes <- r.FormValue("code") }))
	t.Cleanup(redirect.Close)
	_, _, err := w.alice.Approve(t.Context(), w.URL+"/oauth/v2/authorize?client_id=1.1&redirect_uri="+redirect.URL)
	must.Do(t, err)
	s := w.start(t, "webapi.mjs", "SLACK_OTHER_TOKEN="+w.alice.Token(), "SLACK_TEAM="+w.ws.ID, "SLACK_USER="+w.alice.ID, "SLACK_CODE="+<-codes, "SLACK_REDIRECT="+redirect.URL)
	want := map[string]any{"bot": w.ws.Bot().BotID, "updated": "edited", "notMine": "cant_update_message", "tooLong": "msg_too_long", "truncated": "message_truncated",
		"streamed": 301.0, "expired": "message_not_in_streaming_state", "texts": []any{"question", "twice", "edited", "xxxxxxxx", "aaaaaaaa"},
		"installed": "acme"}
	compare.Equal(t, "the client reads something else", want, s.read())
}

// @slack/socket-mode gets hello, events, commands and clicks, acknowledges them, and comes
// back after a disconnect.
func TestSocketMode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{RetryDelays: []time.Duration{0}, AckTimeout: time.Minute})
	w.token = "xapp-1-A0001-1"
	s := w.start(t, "socket.mjs")
	s.expect(map[string]any{"connected": true})
	_, err := w.alice.Post("C1", "one")
	must.Do(t, err)
	s.expect(map[string]any{"type": "events_api", "text": "one", "retry": 0.0})
	_, err = w.alice.Command("C1", "/context", "")
	must.Do(t, err)
	s.expect(map[string]any{"type": "slash_commands", "text": "/context", "retry": 0.0})
	w.Disconnect("warning")
	s.expect(map[string]any{"connected": true})
	_, err = w.alice.Post("C1", "two")
	must.Do(t, err)
	s.expect(map[string]any{"type": "events_api", "text": "two", "retry": 0.0})
	must.Do(t, w.WaitDelivered(t.Context()))
	for _, d := range w.Deliveries() {
		if !d.Acknowledged() {
			t.Errorf("got %+v, want it acknowledged", d)
		}
	}
}

// signedEvent returns a request of Slack with an event.
func signedEvent(body string) rawRequest {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	return rawRequest{"/slack/events", body, map[string]string{
		"Content-Type": "application/json", "X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": fakeslack.Sign("signing-secret", timestamp, []byte(body)),
	}}
}

// A socket that is open and silent is noticed: Bobbin opens another one, and what was sent to
// the silent one comes again.
func TestSocketGhost(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	b := &bobbin{world: newWorld(t, fakeslack.Options{AckTimeout: 5 * time.Second,
		RetryDelays: []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second}})}
	b.start(t, b.APIURL(), "BOBBIN_SLACK_APP_TOKEN=xapp-1-A0001-1")
	b.await(t, "the socket", func() bool { return b.Sockets() == 1 })
	ask := func(text string) string {
		t.Helper()
		return must.Get(b.alice.Post("C1", b.ws.Bot().Mention()+" "+text))(t)
	}
	answered := func(root string) func() bool { return func() bool { return len(b.ws.Thread("C1", root)) == 2 } }
	b.await(t, "an answer", answered(ask("hello")))
	b.SilenceSockets()
	silent := ask("are you there?")
	b.await(t, "another socket", func() bool { return b.Sockets() == 1 })
	b.await(t, "an answer over another socket", answered(silent))
}
