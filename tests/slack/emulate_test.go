package slack_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// emulate is an imitation of Slack's Web API by other people. It has no streams, no Socket Mode and
// no rate limits.
const emulateBot, emulateAlice, emulateChannel = "xoxb-emulate", "xoxp-emulate", "C000000001"

// webCaller calls the Web API at an address. Its values fill the arguments of calls.
type webCaller struct {
	base   string
	tokens map[string]string // of bot and alice
	values map[string]string
}

// call calls a method and returns its answer.
func (c webCaller) call(t *testing.T, as, method, args string) map[string]any {
	t.Helper()
	form := must.Get(url.ParseQuery(args))(t)
	for name := range form {
		if known, ok := c.values[form.Get(name)]; ok {
			form.Set(name, known)
		}
	}
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+method, strings.NewReader(form.Encode())))(t)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+c.tokens[as])
	response := must.Get(http.DefaultClient.Do(request))(t)
	defer response.Body.Close()
	var answer map[string]any
	must.Do(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

// newEmulate starts emulate.
func newEmulate(t *testing.T) webCaller {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.FindNodeClients(t), "emulate.mjs", emulateBot, emulateAlice)
	cmd.Stderr = t.Output()
	in, out := must.Get(cmd.StdinPipe())(t), must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait() // killed with the test's context if it does not end by itself
	})
	address := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	c := webCaller{strings.TrimSpace(address) + "/api/", map[string]string{"bot": emulateBot, "alice": emulateAlice}, map[string]string{"CHANNEL": emulateChannel}}
	c.call(t, "alice", "conversations.join", "channel=CHANNEL")
	return c
}

// acceptFormTokens lets emulate accept tokens in forms, as Slack does and slack-go sends them; it
// only knows those in headers. It returns the paths that were called so.
func (c *webCaller) acceptFormTokens(t *testing.T) (paths *sync.Map) {
	t.Helper()
	target := must.Get(url.Parse(strings.TrimSuffix(c.base, "/api/")))(t)
	paths = &sync.Map{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if form, invalid := url.ParseQuery(string(body)); err == nil && invalid == nil && form.Get("token") != "" {
			paths.Store(r.URL.Path, true)
			r.Header.Set("Authorization", "Bearer "+form.Get("token"))
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.base = server.URL + "/api/"
	return paths
}

// A Bobbin whose slack.api_url is emulate's answers in a thread there, reads its history and its
// people, and deletes what it posted. Without streams it posts the complete answer.
func TestBobbinOnEmulate(t *testing.T) {
	t.Parallel()
	slack := newEmulate(t)
	methods := slack.acceptFormTokens(t)
	b := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 100_000, 20_000, apptest.NewProvider(t, provider.Options{})), func(c *config.Config) {
		c.Slack.BotToken, c.Slack.SigningSecret, c.Slack.APIURL = config.NewSecret(emulateBot), config.NewSecret("signing-secret"), slack.base
	})
	bot, alice := slack.call(t, "bot", "auth.test", "")["user_id"], slack.call(t, "alice", "auth.test", "")["user_id"]
	slack.values["ROOT"], _ = slack.call(t, "alice", "chat.postMessage", "channel=CHANNEL&text=The pump is red.")["ts"].(string)
	text := fmt.Sprintf("<@%s> what color is it?", bot)
	reply := slack.call(t, "alice", "chat.postMessage", url.Values{"channel": {"CHANNEL"}, "thread_ts": {"ROOT"}, "text": {text}}.Encode())
	event, err := json.Marshal(map[string]any{
		"type": "event_callback", "api_app_id": "A0001", "team_id": "T000000001", "event_id": "Ev1",
		"authorizations": []map[string]any{{"team_id": "T000000001", "user_id": bot, "is_bot": true}},
		"event": map[string]any{
			"type": "app_mention", "channel": emulateChannel, "user": alice, "text": text, "ts": reply["ts"], "thread_ts": slack.values["ROOT"], "event_ts": reply["ts"],
		},
	})
	must.Do(t, err)
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	request := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, b.URL+"/slack/events", bytes.NewReader(event)))(t)
	for name, value := range map[string]string{
		"Content-Type": "application/json", "X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": fakeslack.Sign("signing-secret", timestamp, event),
	} {
		request.Header.Set(name, value)
	}
	response := must.Get(http.DefaultClient.Do(request))(t)
	_ = response.Body.Close()
	compare.Equal(t, "the answer to the event", http.StatusOK, response.StatusCode)
	posts := func() (texts []string) {
		list, _ := slack.call(t, "bot", "conversations.replies", "channel=CHANNEL&ts=ROOT")["messages"].([]any)
		for _, m := range list {
			if m, _ := m.(map[string]any); m["user"] == bot {
				texts = append(texts, fmt.Sprint(m["text"]))
			}
		}
		return texts
	}
	for limit := time.Now().Add(apptest.Patience); len(posts()) != 1 || !strings.HasSuffix(posts()[0], "what color is it?"); apptest.PauseBriefly(t) {
		if time.Now().After(limit) {
			t.Fatalf("got the posts %q, want the answer", posts())
		}
	}
	page := must.Get(client.Call(t.Context(), b, ops.ListSessions, core.SessionQuery{}))(t)
	log := must.Get(client.Call(t.Context(), b, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: page.Items[0].ID}}))(t)
	if len(log.Items) != 3 || log.Items[0].Content != "The pump is red." || log.Items[1].Author != "alice" {
		t.Errorf("got the messages %+v, want the history, and a name", log.Items)
	}
	deletion := must.Get(client.Call(t.Context(), b, ops.CreateDeletion, ops.NewDeletion{SessionID: page.Items[0].ID, SlackPosts: true}))(t)
	must.Get(apptest.AwaitDeletion(t.Context(), b, deletion.ID))(t)
	compare.Equal(t, "posts after the deletion", 0, len(posts()))
	for _, method := range []string{"auth.test", "users.info", "conversations.replies", "chat.postMessage", "chat.delete"} {
		if _, called := methods.Load("/api/" + method); !called {
			t.Errorf("Bobbin did not call %s", method)
		}
	}
}
