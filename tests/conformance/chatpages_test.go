package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// chatPage sends what the server of a chat page sends, configured as docs/CLIENTS.md says.
type chatPage struct {
	*bobbin

	base    string // as the page configures it; its host is not this machine's name
	key     string
	headers map[string]string // of the chat
	session core.SessionID    // of the latest answer
}

// containerHost is this machine as a container calls it, with Bobbin's port.
const containerHost = "host.docker.internal:8080"

// send makes a request to a path below the base URL and returns the answer's headers and body.
func (p *chatPage) send(t *testing.T, method, path string, body object) (http.Header, []byte) {
	t.Helper()
	if want := "http://" + containerHost + "/v1"; p.base != want {
		t.Fatalf("the base URL is %q, want %q", p.base, want)
	}
	var encoded io.Reader
	if body != nil {
		raw := must.Get(json.Marshal(body))(t)
		encoded = bytes.NewReader(raw)
	}
	r := must.Get(http.NewRequestWithContext(t.Context(), method, strings.Replace(p.base, containerHost, p.addr, 1)+path, encoded))(t)
	r.Host = containerHost
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range p.headers {
		r.Header.Set(name, value)
	}
	response := must.Get(http.DefaultClient.Do(r))(t)
	defer response.Body.Close()
	answer := must.Get(io.ReadAll(response.Body))(t)
	must.True(t, response.StatusCode == http.StatusOK, "%s %s: got %s, %s", method, path, response.Status, answer)
	return response.Header, answer
}

// models returns the models of the list.
func (p *chatPage) models(t *testing.T) []string {
	t.Helper()
	_, raw := p.send(t, http.MethodGet, "/models", nil)
	var names []string
	for _, m := range decode[struct{ Data []struct{ ID string } }](t, raw).Data {
		names = append(names, m.ID)
	}
	return names
}

// complete makes a chat completion, checks how its history was taken, and returns its text.
func (p *chatPage) complete(t *testing.T, what, want string, body object) string {
	t.Helper()
	header, raw := p.send(t, http.MethodPost, "/chat/completions", body)
	wantEqual(t, what, header.Get("X-Bobbin-History"), want)
	p.session = core.SessionID(header.Get("X-Session-Id"))
	if body["stream"] != true {
		return decode[completion](t, raw).text()
	}
	var events []json.RawMessage
	for line := range strings.Lines(string(raw)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			events = append(events, json.RawMessage(data))
		}
	}
	last := len(events) - 1
	if last < 1 || string(events[last]) != "[DONE]" || decode[completion](t, events[last-1]).Usage == nil {
		t.Fatalf("%s: got the stream %s, want one with usage and an end", what, raw)
	}
	return deltas(t, events[:last])
}

// wantLog checks the messages of a session: how many with all branches, and the path.
func (p *chatPage) wantLog(t *testing.T, id core.SessionID, messages int, want ...string) {
	t.Helper()
	log := (&conversation{bobbin: p.bobbin}).log(t, id)
	wantEqual(t, "messages in the log", len(log), messages)
	wantEqual(t, "path", path(log), strings.Join(want, "\n"))
}

// clientsText returns docs/CLIENTS.md.
func clientsText(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile(clientsPage))(t)
	return string(text)
}

// newOpenWebUI returns an Open WebUI with the environment of the page's command, and Alice's key.
func newOpenWebUI(t *testing.T, b *bobbin) (page *chatPage, user string) {
	t.Helper()
	command := block(t, clientsText(t), "sh", "ghcr.io/open-webui/open-webui")
	environment := map[string]string{}
	for _, m := range regexp.MustCompile(`-e (\w+)=(<[^>]+>|\S+)`).FindAllStringSubmatch(command, -1) {
		environment[m[1]] = m[2]
	}
	compare.Contains(t, "the container does not know host.docker.internal", "--add-host=host.docker.internal:host-gateway ", command)
	page = &chatPage{bobbin: b, base: environment["OPENAI_API_BASE_URL"], key: strings.Replace(environment["OPENAI_API_KEY"], "<your key>", aliceKey, 1), headers: map[string]string{}}
	user = "6f1c2a4e-3b0d-4c55-9a7e-0d5b8f1e2c33"
	if environment["ENABLE_FORWARD_USER_INFO_HEADERS"] == "true" {
		page.headers = map[string]string{
			"X-OpenWebUI-User-Name": "Ann%20M%C3%BCller", "X-OpenWebUI-User-Id": user, "X-OpenWebUI-User-Email": "ann@example.com", "X-OpenWebUI-User-Role": "user",
			"X-OpenWebUI-Chat-Id": "0b7f5d0a-9a53-4f0e-8a39-5d1d9b0c7e11",
		}
	}
	return page, user
}

// task returns a request of Open WebUI for something about the chat, with the form of its templates.
func task(what, output, history string, more object) object {
	text := "### Task:\n" + what + "\n### Guidelines:\n- Use the language of the chat.\n- Answer with the JSON object alone.\n### Output:\nJSON format: " + output +
		"\n### Chat History:\n<chat_history>\n" + history + "\n</chat_history>"
	body := object{"model": "assistant", "messages": []any{user(text)}, "stream": false}
	for name, value := range more {
		body[name] = value
	}
	return body
}

// A chat in Open WebUI is one session; what it asks about the chat is not in the log.
func TestOpenWebUI(t *testing.T) {
	t.Parallel()
	p, owner := newOpenWebUI(t, newBobbin(t, dbtest.MigratedSQLiteURL(t)))
	chat := func(messages ...any) object {
		return object{"model": "assistant", "messages": messages, "stream": true, "stream_options": object{"include_usage": true}}
	}
	if got := p.models(t); !slices.Contains(got, "assistant") {
		t.Errorf("got the models %s, want assistant among them", got)
	}
	first, second, edited := "What does a loom do?", "And a shuttle?", "And a heddle?"
	p.complete(t, "search queries before the first message", "side", task("Decide whether to search, and write the queries.", `{ "queries": ["query"] }`, "USER: "+first, nil))
	answer := p.complete(t, "first message", "append", chat(user(first)))
	id := p.session
	history := "USER: " + first + "\nASSISTANT: " + answer
	aside := func(history string) {
		p.complete(t, "title", "side", task("Write a short title of the chat.", `{ "title": "title" }`, history, object{"max_completion_tokens": 1000}))
		p.complete(t, "tags", "side", task("Write one to three tags of the chat.", `{ "tags": ["tag"] }`, history, nil))
		p.complete(t, "follow-up questions", "side", task("Suggest what the user may ask next.", `{ "follow_ups": ["question"] }`, history, nil))
		p.complete(t, "search queries", "side", task("Decide whether to search, and write the queries.", `{ "queries": ["query"] }`, history, nil))
	}
	aside(history)
	next := p.complete(t, "second message", "append", chat(user(first), assistant(answer), user(second)))
	wantEqual(t, "session", p.session, id)
	aside("USER: " + second + "\nASSISTANT: " + next) // later ones quote the end of the chat
	p.complete(t, "new answer", "branch", chat(user(first), assistant(answer), user(second)))
	next = p.complete(t, "edited message", "branch", chat(object{"role": "system", "content": "Answer briefly."}, user(first), assistant(answer), user(edited)))
	p.wantLog(t, id, 7, "user: "+first, "assistant: "+answer, "user: "+edited, "assistant: "+next)
	session := must.Get(apiclient.Call(t.Context(), p, ops.GetSession, ops.InSession{SessionID: id}))(t)
	wantEqual(t, "user of the session", session.UserID, owner)

	document := "### Task:\nAnswer the query with the context, and cite it.\n<context>\n<source id=\"1\">A bobbin holds thread.</source>\n</context>\n\n" + "What holds thread?"
	p.headers["X-OpenWebUI-Chat-Id"] = "5b1f0c7e-2f7c-4c40-9d7e-6a3a1f0b9d22"
	answer = p.complete(t, "message with a document", "append", chat(user(document)))
	compare.True(t, p.session != id, "two chats have one session")
	id = p.session
	next = p.complete(t, "message after one with a document", "branch", chat(user("What holds thread?"), assistant(answer), user("Why?")))
	p.wantLog(t, id, 6, "user: What holds thread?", "assistant: "+answer, "user: Why?", "assistant: "+next)
}

// wantNoSessions checks that the list of sessions is empty.
func (p *chatPage) wantNoSessions(t *testing.T) {
	t.Helper()
	page := must.Get(apiclient.Call(t.Context(), p, ops.ListSessions, core.SessionQuery{}))(t)
	wantEqual(t, "sessions in the list", len(page.Items), 0)
}

// Temporary chats in Open WebUI are no sessions. Those of a browser tab have one name; in older
// versions, all have the same.
func TestOpenWebUITemporaryChat(t *testing.T) {
	t.Parallel()
	p, _ := newOpenWebUI(t, newBobbin(t, dbtest.MigratedSQLiteURL(t)))
	for i, text := range []string{"What does a loom do?", "Is it raining?", "And a shuttle?", "And tomorrow?"} {
		p.headers["X-OpenWebUI-Chat-Id"] = []string{"local:qG0zYxkq5vN3sHlAAAAB", "local"}[i/2]
		p.complete(t, text, "append", object{"model": "assistant", "messages": []any{user(text)}, "stream": true, "stream_options": object{"include_usage": true}})
		p.wantNoSessions(t)
	}
}

// libreChatEndpoint is an endpoint in librechat.yaml.
type libreChatEndpoint struct {
	Name    string `yaml:"name"`
	BaseURL string `yaml:"baseURL"`
	APIKey  string `yaml:"apiKey"`
	Models  struct {
		Default []string `yaml:"default"`
		Fetch   bool     `yaml:"fetch"`
	} `yaml:"models"`
	Headers     map[string]string `yaml:"headers"`
	AddParams   object            `yaml:"addParams"`
	TitleConvo  bool              `yaml:"titleConvo"`
	TitleModel  string            `yaml:"titleModel"`
	TitleMethod string            `yaml:"titleMethod"`
	TitleTiming string            `yaml:"titleTiming"`
}

// libreChat is a LibreChat with the endpoint of the page, and Alice's key.
type libreChat struct {
	chatPage
	libreChatEndpoint
}

func newLibreChat(t *testing.T, b *bobbin) *libreChat {
	t.Helper()
	var file struct {
		Endpoints struct {
			Custom []libreChatEndpoint `yaml:"custom"`
		} `yaml:"endpoints"`
	}
	decoder := yaml.NewDecoder(strings.NewReader(block(t, clientsText(t), "yaml", "LIBRECHAT_")))
	decoder.KnownFields(true)
	must.Do(t, decoder.Decode(&file))
	must.True(t, len(file.Endpoints.Custom) == 1, "got %d endpoints, want one", len(file.Endpoints.Custom))
	e := file.Endpoints.Custom[0]
	return &libreChat{chatPage{bobbin: b, base: e.BaseURL, key: strings.Replace(e.APIKey, "${BOBBIN_KEY}", aliceKey, 1)}, e}
}

// libreChatUser is the id of a user of LibreChat.
const libreChatUser = "665f1b2c9d3e4a0012ab34cd"

// open fills in the headers of a chat. An unknown placeholder stays as it is.
func (l *libreChat) open(chat string) {
	l.headers = map[string]string{}
	for name, value := range l.Headers {
		l.headers[name] = strings.NewReplacer("{{LIBRECHAT_BODY_CONVERSATIONID}}", chat, "{{LIBRECHAT_USER_ID}}", libreChatUser).Replace(value)
	}
}

// chat returns the body of a message.
func (l *libreChat) chat(messages ...any) object {
	body := object{"model": l.Models.Default[0], "user": libreChatUser, "messages": messages, "stream": true, "stream_options": object{"include_usage": true}}
	for name, value := range l.AddParams {
		body[name] = value
	}
	return body
}

// titles returns the bodies of requests for a title by each method; answer is empty where LibreChat
// asks beside the first message.
func (l *libreChat) titles(text, answer string) map[string]object {
	quoted := "User: " + text + "\nAI: " + answer
	completion := l.chat(user("Provide a concise, 5-word-or-less title for the conversation, using its same language, with no punctuation. Only return the title itself.\n\nConversation:\n" + quoted))
	structured := l.chat(user("Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language (5 words or less)\n\n" + quoted))
	structured["response_format"] = object{"type": "json_schema", "json_schema": object{"name": "extract", "schema": object{"type": "object", "properties": object{"title": object{"type": "string"}}, "required": []any{"title"}}}}
	all := map[string]object{"completion": completion, "structured": structured}
	for _, body := range all {
		body["model"], body["stream"] = l.TitleModel, false
		delete(body, "stream_options")
	}
	return all
}

// A chat in LibreChat is one session; its requests for a title are not in the log, whether they
// come before the first message, beside it, or after the answer.
func TestLibreChat(t *testing.T) {
	t.Parallel()
	l := newLibreChat(t, newBobbin(t, dbtest.MigratedSQLiteURL(t)))
	l.open("1d3a6c0e-7a6f-4d0c-8f5e-3b9a2c4d5e66")
	if got := l.models(t); !l.Models.Fetch || !slices.Contains(got, l.Models.Default[0]) || !slices.Contains(got, l.TitleModel) {
		t.Errorf("got the models %s, want them fetched, with %s and %s", got, l.Models.Default, l.TitleModel)
	}
	if !l.TitleConvo || l.TitleTiming != "final" {
		t.Error("want titles when the answer is there: only then does the log have what they quote, whatever their prompt is")
	}
	first, second, edited := "What does a loom do?", "And a shuttle?", "And a heddle?"
	for method, title := range l.titles(first, "") {
		l.complete(t, method+" before the first message", "side", title)
	}
	gate := l.gates.add(t, first)
	answered := make(chan string)
	beside := *l
	go func() {
		defer close(answered)
		answered <- beside.complete(t, "first message", "append", l.chat(user(first)))
	}()
	<-gate.asked
	for method, title := range l.titles(first, "") {
		l.complete(t, method+" beside the first message", "side", title)
	}
	gate.release()
	answer := <-answered
	id := beside.session
	for method, title := range l.titles(first, answer) {
		l.complete(t, method+" after the answer", "side", title)
	}
	parts := object{"role": "assistant", "content": []any{object{"type": "text", "text": answer}}}
	l.complete(t, "second message", "append", l.chat(user(first), parts, user(second)))
	wantEqual(t, "session", l.session, id)
	l.complete(t, "new answer", "branch", l.chat(user(first), parts, user(second)))
	next := l.complete(t, "edited message", "branch", l.chat(object{"role": "system", "content": "Answer briefly."}, user(first), assistant(answer), user(edited)))
	l.wantLog(t, id, 7, "user: "+first, "assistant: "+answer, "user: "+edited, "assistant: "+next)
	session := must.Get(apiclient.Call(t.Context(), l, ops.GetSession, ops.InSession{SessionID: id}))(t)
	wantEqual(t, "user of the session", session.UserID, libreChatUser)
}

// A version of LibreChat that does not know the placeholder sends it as it is: chats of all users
// would be one session.
func TestLibreChatWithoutPlaceholders(t *testing.T) {
	t.Parallel()
	l := newLibreChat(t, newBobbin(t, dbtest.MigratedSQLiteURL(t)))
	l.headers = l.Headers
	for _, text := range []string{"What does a loom do?", "Is it raining?"} {
		l.complete(t, text, "append", l.chat(user(text)))
		l.wantNoSessions(t)
	}
}
