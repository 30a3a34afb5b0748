package slackclients_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// emulate is a second imitation of Slack's Web API, by other people: what it and the fake Slack
// understand in the same way is less likely to be a mistake of the fake. It has no streams, no
// Socket Mode and no rate limits.
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
	form, err := url.ParseQuery(args)
	must(t, err)
	for name := range form {
		if known, ok := c.values[form.Get(name)]; ok {
			form.Set(name, known)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+method, strings.NewReader(form.Encode()))
	must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+c.tokens[as])
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	var answer map[string]any
	must(t, json.NewDecoder(response.Body).Decode(&answer))
	return answer
}

// newEmulate starts emulate.
func newEmulate(t *testing.T) webCaller {
	t.Helper()
	s := (&world{token: emulateBot}).startAt(t, "", "emulate.mjs", "SLACK_OTHER_TOKEN="+emulateAlice)
	address, _ := s.read()["url"].(string)
	c := webCaller{address + "/api/", map[string]string{"bot": emulateBot, "alice": emulateAlice}, map[string]string{"CHANNEL": emulateChannel}}
	c.call(t, "alice", "conversations.join", "channel=CHANNEL")
	return c
}

// acceptFormTokens lets emulate accept tokens in forms, as Slack does and slack-go sends them; it
// only knows those in headers. It returns the paths that were called so.
func (c *webCaller) acceptFormTokens(t *testing.T) (paths *sync.Map) {
	t.Helper()
	target, err := url.Parse(strings.TrimSuffix(c.base, "/api/"))
	must(t, err)
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

// shape returns the paths of the answer's values with the kinds of these. Elements of lists have
// one path.
func shape(value any, path string, into map[string]string) map[string]string {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			shape(field, strings.TrimPrefix(path+"."+name, "."), into)
		}
	case []any:
		for _, element := range v {
			shape(element, path+"[]", into)
		}
	case nil:
	default:
		into[path] = fmt.Sprintf("%T", v)
	}
	return into
}

// The fake Slack and emulate answer the same calls in the same way: the fields that Bobbin reads
// are there and of the same kind, and what one refuses the other refuses with the same error.
// Differences are those in the table, with their reasons.
func TestSameShapesAsEmulate(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	other := newEmulate(t)
	w := newWorld(t, fakeslack.Options{})
	fake := webCaller{w.APIURL(), map[string]string{"bot": w.token, "alice": w.alice.Token()}, map[string]string{"CHANNEL": "C1"}}
	for _, c := range []struct {
		as, method, args string
		read             string            // the fields that Bobbin reads, separated by blanks
		differs          map[string]string // fields that emulate does not have, with the reason; "error" if the errors differ
		store            string            // the value in arguments that the ts of the answer becomes
	}{
		{as: "bot", method: "auth.test", read: "ok team_id user_id bot_id url"},
		{as: "alice", method: "auth.test", read: "ok team_id user_id", store: "ALICE"},
		{as: "alice", method: "chat.postMessage", args: "channel=CHANNEL&text=question", read: "ok ts channel message.text message.user", store: "ROOT"},
		{
			as: "bot", method: "chat.postMessage", store: "POST",
			args: `channel=CHANNEL&thread_ts=ROOT&text=plain&blocks=[{"type":"markdown","text":"**bold**"}]&metadata={"event_type":"bobbin_delivery","event_payload":{"delivery_id":"m/0"}}`,
			read: "ok ts channel message.thread_ts message.blocks[].type message.bot_id message.app_id",
			differs: map[string]string{
				"message.bot_id": "Slack's clients read it from posts of apps (Bolt ignores the app's own by it)",
				"message.app_id": "likewise",
			},
		},
		{as: "bot", method: "chat.update", args: "channel=CHANNEL&ts=POST&text=changed", read: "ok ts channel text"},
		{
			as: "bot", method: "conversations.replies", args: "channel=CHANNEL&ts=ROOT&include_all_metadata=true&limit=200",
			read:    "ok has_more messages[].ts messages[].text messages[].user messages[].thread_ts messages[].metadata.event_type messages[].metadata.event_payload.delivery_id messages[].bot_id",
			differs: map[string]string{"messages[].bot_id": "as in the answer to chat.postMessage"},
		},
		{as: "bot", method: "conversations.info", args: "channel=CHANNEL", read: "ok channel.id channel.name"},
		{as: "bot", method: "users.info", args: "user=ALICE", read: "ok user.id user.team_id user.name user.real_name user.is_bot user.profile.display_name user.profile.real_name user.tz user.is_email_confirmed",
			differs: map[string]string{"user.tz": "emulate has no time zones", "user.is_email_confirmed": "emulate does not say it, so nobody would be linked by e-mail"}},
		{as: "bot", method: "chat.postEphemeral", args: "channel=CHANNEL&user=ALICE&text=secret", read: "ok message_ts"},
		{as: "bot", method: "chat.delete", args: "channel=CHANNEL&ts=POST", read: "ok ts channel"},
		{as: "bot", method: "chat.delete", args: "channel=CHANNEL&ts=POST"},
		{as: "bot", method: "chat.update", args: "channel=CHANNEL&ts=POST&text=x"},
		{as: "bot", method: "chat.update", args: "channel=CHANNEL&ts=ROOT&text=x"},
		{as: "bot", method: "chat.postMessage", args: "channel=C404&text=x"},
		{as: "bot", method: "chat.postMessage", args: "channel=CHANNEL"},
		{as: "bot", method: "conversations.replies", args: "channel=CHANNEL&ts=1.000001", differs: map[string]string{"error": "emulate answers an empty list; Slack documents thread_not_found"}},
		{as: "bot", method: "conversations.info", args: "channel=C404"},
		{as: "bot", method: "users.info", args: "user=U404"},
		{as: "nobody", method: "auth.test", differs: map[string]string{"error": "emulate lets a caller without a token act as its administrator"}},
	} {
		got, want := fake.call(t, c.as, c.method, c.args), other.call(t, c.as, c.method, c.args)
		if diff := cmp.Diff(want["error"], got["error"]); diff != "" && c.differs["error"] == "" {
			t.Errorf("%s %s: error (-emulate +fake):\n%s", c.method, c.args, diff)
		}
		kinds, theirs := shape(got, "", map[string]string{}), shape(want, "", map[string]string{})
		for field := range strings.FieldsSeq(c.read) {
			_, isKnown := c.differs[field]
			switch {
			case kinds[field] == "":
				t.Errorf("%s: the fake Slack has no %s; it has %v", c.method, field, slices.Sorted(maps.Keys(kinds)))
			case kinds[field] != theirs[field] && !isKnown:
				t.Errorf("%s: %s is %s, with emulate %q", c.method, field, kinds[field], theirs[field])
			case kinds[field] == theirs[field] && isKnown:
				t.Errorf("%s: %s does not differ any more; remove it from the table", c.method, field)
			}
		}
		for caller, answer := range map[*webCaller]map[string]any{&fake: got, &other: want} {
			if id, ok := answer["user_id"].(string); ok && c.store == "ALICE" {
				caller.values["ALICE"] = id
			} else if ts, ok := answer["ts"].(string); ok && c.store != "" {
				caller.values[c.store] = ts
			}
		}
	}
}

// A Bobbin whose slack.api_url is emulate's answers in a thread there, reads its history and its
// people, and deletes what it posted. Without streams it posts the complete answer.
func TestBobbinOnEmulate(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	slack := newEmulate(t)
	b := &bobbin{world: &world{token: emulateBot}}
	methods := slack.acceptFormTokens(t)
	b.start(t, dbtest.MigratedSQLiteURL(t), slack.base, "BOBBIN_SLACK_SIGNING_SECRET=signing-secret")
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
	must(t, err)
	if status := signed("/slack/events", "application/json", string(event), "signing-secret", 0).status(t, "http://"+b.addr); status != http.StatusOK {
		t.Fatalf("got %d, want that the event is accepted", status)
	}
	posts := func() (texts []string) {
		list, _ := slack.call(t, "bot", "conversations.replies", "channel=CHANNEL&ts=ROOT")["messages"].([]any)
		for _, m := range list {
			if m, _ := m.(map[string]any); m["user"] == bot {
				texts = append(texts, fmt.Sprint(m["text"]))
			}
		}
		return texts
	}
	poll(t, "the answer", func() bool { return len(posts()) == 1 && strings.HasSuffix(posts()[0], "what color is it?") })
	page, err := client.Call(t.Context(), b, ops.ListSessions, core.SessionQuery{})
	must(t, err)
	log, err := client.Call(t.Context(), b, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: page.Items[0].ID}})
	must(t, err)
	if len(log.Items) != 3 || log.Items[0].Content != "The pump is red." || log.Items[1].Author != "alice" {
		t.Errorf("got the messages %+v, want the history, and a name", log.Items)
	}
	if status := (rawRequest{"/api/v1/deletions", fmt.Sprintf(`{"session_id": %q, "slack_posts": true}`, page.Items[0].ID), map[string]string{"Content-Type": "application/json"}}).status(t, "http://"+b.addr); status != http.StatusAccepted {
		t.Fatalf("got %d, want that the deletion is accepted", status)
	}
	poll(t, "the deletion of the posts", func() bool { return len(posts()) == 0 })
	for _, method := range []string{"auth.test", "users.info", "conversations.replies", "chat.postMessage", "chat.delete"} {
		if _, called := methods.Load("/api/" + method); !called {
			t.Errorf("Bobbin did not call %s", method)
		}
	}
}
