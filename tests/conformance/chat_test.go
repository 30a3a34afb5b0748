package conformance_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// chatScenarios are for every client: chat completions.
func chatScenarios() []scenario {
	return []scenario{
		{name: "chat", run: chat},
		{name: "stream", run: stream},
		{name: "long stream of many alphabets", run: longStream},
		{name: "server tool", run: serverTool},
		{name: "approval", run: approval},
		{name: "cancel", run: cancelStream},
		{name: "cut of the provider", run: providerCut},
		{name: "errors", run: errorShapes},
		{name: "busy", run: busy},
		{name: "failed run", run: failedRun},
		{name: "long conversation", run: longConversation},
		{name: "edit and new answer", run: branches},
		{name: "side call", run: sideCall},
		{name: "side calls of chat pages", run: pageSideCalls},
		{name: "session by header", run: sessionByHeader},
		{name: "no session: in no list", run: noSession},
		{name: "Idempotency-Key", run: idempotencyKey},
		{name: "two owners", run: twoOwners},
		{name: "image", run: image},
		{name: "structured output", run: structured},
	}
}

func chat(t *testing.T, c *conversation) {
	q := c.question("hello")
	got := c.ask(t, q)
	wantEqual(t, "text", got.text(), "answer to: "+q)
	wantEqual(t, "finish reason", got.Choices[0].FinishReason, "stop")
	if u := got.Usage; u == nil || u.Prompt == 0 || u.Completion == 0 || u.Total != u.Prompt+u.Completion {
		t.Errorf("got usage %+v, want tokens", u)
	}
}

func stream(t *testing.T, c *conversation) { c.wantStream(t, c.question("hello")) }

func longStream(t *testing.T, c *conversation) { c.wantStream(t, c.question("tell me at length")) }

// wantStream checks that the deltas of an answer and the text that the client puts together are
// the stored message.
func (c *conversation) wantStream(t *testing.T, q string) {
	t.Helper()
	out := c.inSession().do(t, c.newChat("stream", []any{user(q)}, object{"stream_options": object{"include_usage": true}}))
	got := decode[completion](t, out.result)
	want := "answer to: " + say(q)
	wantEqual(t, "final text", got.text(), want)
	wantEqual(t, "deltas", deltas(t, out.events), want)
	compare.True(t, got.Usage != nil && got.Usage.Total != 0, "got usage %+v, want tokens", got.Usage)
	wantEqual(t, "log", path(c.log(t, c.session())), "user: "+q+"\nassistant: "+want)
}

func serverTool(t *testing.T, c *conversation) {
	c.model = "helper"
	q := c.question("use a tool")
	got := c.inSession().ask(t, q)
	wantEqual(t, "text", got.text(), "answer to: "+q)
	wantEqual(t, "tool calls", len(got.Choices[0].Message.ToolCalls), 0)
	wantEqual(t, "messages", len(c.log(t, c.session())), 4)
	next := c.question("thanks")
	c.ask(t, next)
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
	wantEqual(t, "messages", len(c.log(t, c.session())), 6)
}

func approval(t *testing.T, c *conversation) {
	c.model = "careful"
	c.ask(t, c.question("hello"))
	c.inSession()
	c.history = nil
	q := c.question("use a tool")
	answers := c.cl.begin(t, c.newChat("stream", []any{user(q)}, nil))
	var run core.Run
	process.Await(t, "the question of the run", func() bool {
		run = c.runOf(t, q)
		return len(run.Approvals) > 0
	})
	must.Get(apiclient.Call(t.Context(), c, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Decision: "approve"}))(t)
	out := await(t, answers)
	if out.fault != nil {
		t.Fatal(out.fault)
	}
	wantEqual(t, "text", decode[completion](t, out.result).text(), "answer to: "+q)
}

// runOf returns the waiting run of the session with a question; zero = there is none yet.
func (c *conversation) runOf(t *testing.T, q string) core.Run {
	t.Helper()
	page := must.Get(apiclient.Call(t.Context(), c, ops.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}))(t)
	for _, s := range page.Items {
		if s.ActiveRunID == "" || !strings.Contains(path(c.log(t, s.ID)), q) {
			continue
		}
		return must.Get(apiclient.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: s.ActiveRunID}))(t)
	}
	return core.Run{}
}

func cancelStream(t *testing.T, c *conversation) {
	c.inSession()
	held := c.question("held")
	c.gates.add(t, held)
	made := c.newChat("stream", []any{user(held)}, nil)
	made.Until = "answer to"
	got := strings.TrimSpace(deltas(t, c.do(t, made).events))
	wantEqual(t, "text before the end of the connection", got, "answer to:")
	id := c.session()
	process.Await(t, "the end of the run", func() bool { return c.latestRun(t, id).Status == core.RunCanceled })
	next := c.question("next")
	c.history = []any{user(held), assistant(got)}
	c.ask(t, next)
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
	messages := c.log(t, id)
	wantEqual(t, "messages", len(messages), 4)
	wantEqual(t, "status of the partial answer", messages[1].Status, core.MessagePartial)
}

func providerCut(t *testing.T, c *conversation) {
	c.inSession()
	once := c.question(breakOnce)
	wantEqual(t, "whole answer after a cut", c.ask(t, once).text(), "answer to: "+once)
	// A stream cannot take back what it said: the whole text, or an error.
	cut := c.question(breakOnce + " more")
	out := await(t, c.cl.begin(t, c.newChat("stream", append(c.history, user(cut)), nil)))
	if out.fault == nil {
		wantEqual(t, "stream after a cut", decode[completion](t, out.result).text(), "answer to: "+cut)
	}
	always := c.question(breakAlways)
	if out := await(t, c.cl.begin(t, c.newChat("stream", []any{user(always)}, object{"metadata": object{"session_id": c.mark + "-2"}}))); out.fault == nil {
		t.Errorf("got %s, want an error: the provider never finishes", out.result)
	}
	c.front.count(c.mark)
	got := c.fail(t, c.newChat("create", []any{user(always)}, object{"metadata": object{"session_id": c.mark + "-3"}}))
	compare.True(t, got.Status >= http.StatusInternalServerError && got.Message != "", "got %s, want an error of the server", got)
	wantEqual(t, "requests for a failed run", c.front.count(c.mark), 1)
}

func errorShapes(t *testing.T, c *conversation) {
	hello := []any{user(c.question("hello"))}
	tests := []struct {
		name   string
		more   object
		key    string
		status int
		code   string
		param  string
	}{
		{"unknown model", object{"model": "gpt-5"}, "", http.StatusNotFound, "model_not_found", ""},
		{"unknown model of an agent", object{"model": "plain/none"}, "", http.StatusNotFound, "model_not_found", ""},
		{"bad key", nil, "bbn-nobody-0123456789-0123456789", http.StatusUnauthorized, "", ""},
		{"bad name of a tool", object{"tools": []any{object{"type": "function", "function": object{"name": "no name"}}}}, "", http.StatusBadRequest, "invalid", "tools[0].function.name"},
		{"too long for the window", object{"model": "reader", "messages": []any{object{"role": "system", "content": differentWords(10_000)}, user("hello")}}, "", http.StatusBadRequest, "context_length_exceeded", ""},
	}
	for _, tt := range tests {
		made := c.newChat("create", hello, tt.more)
		if tt.key != "" {
			made.Key = tt.key
		}
		c.front.count(c.mark)
		got := c.fail(t, made)
		if got.Status != tt.status || tt.code != "" && got.Code != tt.code || got.Param != tt.param || got.Type == "" {
			t.Errorf("%s: got %s, want %d %s, param %q", tt.name, got, tt.status, tt.code, tt.param)
		}
		wantEqual(t, tt.name+": requests", c.front.count(c.mark), 1)
	}
}

func busy(t *testing.T, c *conversation) {
	c.inSession()
	held := c.question("held")
	gate := c.gates.add(t, held)
	answers := c.cl.begin(t, c.newChat("stream", []any{user(held)}, nil))
	<-gate.asked
	second := c.newChat("create", []any{user(held), assistant("answer to: "), user("hurry")}, nil)
	wantEqual(t, "another message", decode[completion](t, c.do(t, second).result).text(), "answer to: hurry")
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "side")
	second.Headers = map[string]string{headerCase: c.mark + "-2", "Idempotency-Key": c.mark}
	wantEqual(t, "status with a key", c.fail(t, second).Status, http.StatusConflict)
	wantEqual(t, "requests for a busy session", c.front.count(c.mark+"-2"), 3) // no run has begun: repeating is right
	gate.release()
	if out := await(t, answers); out.fault != nil {
		t.Fatal(out.fault)
	}
}

func failedRun(t *testing.T, c *conversation) {
	c.front.count(c.mark)
	got := c.fail(t, c.newChat("create", []any{user(c.question(breakAlways))}, nil))
	if got.Status < http.StatusInternalServerError || strings.Contains(got.Message, "127.0.0.1") {
		t.Errorf("got %s, want an error of the server without its addresses", got)
	}
	wantEqual(t, "requests for a failed run", c.front.count(c.mark), 1)
}

// longTurns is how many turns the long conversation has: several times the small window.
const longTurns = 24

func longConversation(t *testing.T, c *conversation) {
	c.inSession()
	c.model = "reader"
	filler := strings.Repeat("the loom and the shuttle and the thread ", 40)
	var want []string
	for i := range longTurns {
		q := c.question(fmt.Sprintf("turn %d: %s", i, filler))
		got := c.ask(t, q)
		want = append(want, "user: "+q, "assistant: "+got.text())
		if kind := c.front.header(c.mark, "X-Bobbin-History"); i > 0 && kind != "append" {
			t.Fatalf("turn %d: got the history %s, want append", i, kind)
		}
	}
	messages := c.log(t, c.session())
	wantEqual(t, "messages", len(messages), 2*longTurns)
	wantEqual(t, "log", path(messages), strings.Join(want, "\n"))
}

func branches(t *testing.T, c *conversation) {
	c.inSession()
	one, two, edited := c.question("one"), c.question("two"), c.question("two, edited")
	c.ask(t, one)
	c.ask(t, two)
	id := c.session()
	begun := c.history[:2:2]

	c.history = begun // the last answer anew
	c.ask(t, two)
	wantEqual(t, "new answer", c.front.header(c.mark, "X-Bobbin-History"), "branch")
	wantEqual(t, "messages after a new answer", len(c.log(t, id)), 5)

	c.history = begun // the last question anew
	c.ask(t, edited)
	wantEqual(t, "edit", c.front.header(c.mark, "X-Bobbin-History"), "branch")
	wantEqual(t, "messages after an edit", len(c.log(t, id)), 7)
	wantEqual(t, "path", path(c.log(t, id)), strings.Join([]string{"user: " + one, "assistant: answer to: " + one, "user: " + edited, "assistant: answer to: " + edited}, "\n"))

	c.history = nil // the first question anew
	first := c.question("one two, edited")
	c.ask(t, first)
	wantEqual(t, "edit of the first message", c.front.header(c.mark, "X-Bobbin-History"), "branch")
	wantEqual(t, "path", path(c.log(t, id)), "user: "+first+"\nassistant: answer to: "+first)

	messages := c.log(t, id) // the client goes on where it is although another branch was selected
	last := messages[slices.IndexFunc(messages, func(m core.Message) bool { return m.Content == "answer to: "+edited })].ID
	must.Get(apiclient.Call(t.Context(), c, ops.SelectMessage, ops.InMessage{InSession: ops.InSession{SessionID: id}, MessageID: last}))(t)
	next := c.question("next")
	c.ask(t, next)
	wantEqual(t, "another branch was selected", c.front.header(c.mark, "X-Bobbin-History"), "branch")
	wantEqual(t, "path", path(c.log(t, id)), strings.Join([]string{"user: " + first, "assistant: answer to: " + first, "user: " + next, "assistant: answer to: " + next}, "\n"))
}

func sideCall(t *testing.T, c *conversation) {
	c.inSession()
	c.ask(t, c.question("hello"))
	id := c.session()
	before := len(c.log(t, id))
	title := "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Output:\nJSON format: { \"title\": \"…\" }\n### Chat History:\n<chat_history>\nUSER: " +
		c.question("hello") + "\nASSISTANT: answer to: " + c.question("hello") + "\n</chat_history>"
	got := decode[completion](t, c.do(t, c.newChat("create", []any{user(title)}, nil)).result)
	wantEqual(t, "text", got.text(), "answer to: "+title)
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "side")
	wantEqual(t, "messages after a side call", len(c.log(t, id)), before)
	c.ask(t, c.question("go on"))
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
	wantEqual(t, "messages", len(c.log(t, id)), before+2)
}

// pageSideCalls is about the requests of Open WebUI and LibreChat that quote the chat, whose first
// message is long.
func pageSideCalls(t *testing.T, c *conversation) {
	paste := c.question(differentWords(600))
	said := "answer to: " + paste
	queries := "### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in the given language.\n### Output:\nJSON format: { \"queries\": [] }\n### Chat History:\n<chat_history>\nUSER: " + paste + "\n</chat_history>"
	title := "### Task:\nGenerate a concise title summarizing the chat history.\n### Guidelines:\n- Keep it short: 2-4 words is best.\n### Output:\nJSON format: { \"title\": \"your concise title here\" }\n### Chat History:\n<chat_history>\nUSER: " + paste + "\nASSISTANT: " + said + "\n</chat_history>"
	concise := "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself.\n\nConversation:\nUser: " + paste + "\nAI: "
	detected := "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in the detected language (5 words or less, no punctuation or quotation)\n\nUser: " + paste + "\nAI: " + said
	for _, page := range []struct {
		header        string
		before, after []string
	}{
		{"X-OpenWebUI-Chat-Id", []string{queries}, []string{title, queries}},
		{"X-Conversation-Id", nil, []string{concise, concise + said, detected}},
	} {
		send := func(text, want string) {
			made := c.newChat("create", append(c.history, user(text)), nil)
			made.Headers[page.header] = c.mark + " by " + page.header
			c.do(t, made)
			wantEqual(t, page.header+": history", c.front.header(c.mark, "X-Bobbin-History"), want)
		}
		for _, text := range page.before {
			send(text, "side")
		}
		send(paste, "append")
		id := c.session()
		for _, text := range page.after {
			send(text, "side")
		}
		c.history = []any{user(paste), assistant(said)}
		send(c.question("go on"), "append")
		wantEqual(t, page.header+": session", c.session(), id)
		wantEqual(t, page.header+": messages", len(c.log(t, id)), 4)
		c.history = nil
	}
}

func sessionByHeader(t *testing.T, c *conversation) {
	for _, header := range []string{"X-Session-Id", "X-Conversation-Id", "X-OpenWebUI-Chat-Id"} {
		made := c.newChat("create", []any{user(c.question(header))}, nil)
		made.Headers[header] = c.mark + " by " + header
		answered := decode[completion](t, c.do(t, made).result)
		id := c.session()
		made.Params["messages"] = []any{user(c.question(header)), assistant(answered.text()), user(c.question("next"))}
		c.do(t, made)
		wantEqual(t, header, c.session(), id)
		wantEqual(t, "messages", len(c.log(t, id)), 4)
	}
}

func noSession(t *testing.T, c *conversation) {
	c.ask(t, c.question("hello"))
	id := c.session()
	c.ask(t, c.question("again"))
	compare.True(t, c.session() != id, "both calls without a session are in the session %s", id)
	page := must.Get(apiclient.Call(t.Context(), c, ops.ListSessions, core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}))(t)
	for _, s := range page.Items {
		compare.True(t, s.ID != id, "the session %s of a stateless call is in the list", id)
	}
}

func idempotencyKey(t *testing.T, c *conversation) {
	for _, session := range []string{"", c.mark} {
		c.metadata = nil
		if session != "" {
			c.inSession()
		}
		made := c.newChat("create", []any{user(c.question("hello"))}, nil)
		made.Headers["Idempotency-Key"] = "key of " + c.mark
		first := decode[completion](t, c.do(t, made).result)
		id := c.session()
		wantEqual(t, "completion of the same request", decode[completion](t, c.do(t, made).result).ID, first.ID)
		made.Params["messages"] = []any{user(c.question("another"))}
		got := c.fail(t, made)
		wantEqual(t, "another request", fmt.Sprint(got.Status, " ", got.Code), "400 idempotency_key_reused")
		wantEqual(t, "messages", len(c.log(t, id)), 2)
	}
}

func twoOwners(t *testing.T, c *conversation) {
	c.inSession()
	c.ask(t, c.question("hello"))
	id := c.session()
	// Bob's client uses the id of Alice's session, and then her name for it.
	stolen := c.newChat("create", append(c.history, user("and mine?")), object{"metadata": object{"session_id": string(id)}})
	stolen.Key = bobKey
	got := c.fail(t, stolen)
	wantEqual(t, "status of another owner's session", got.Status, http.StatusNotFound)
	same := c.newChat("create", []any{user(c.question("hello"))}, nil)
	same.Key = bobKey
	c.do(t, same)
	compare.True(t, c.session() != id, "Bob got Alice's session %s by her name for it", id)
	wantEqual(t, "messages of Alice", len(c.log(t, id)), 2)
}

// pixel is an image of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func image(t *testing.T, c *conversation) {
	c.inSession()
	q := c.question("what is in this image?")
	content := []any{object{"type": "text", "text": q}, object{"type": "image_url", "image_url": object{"url": "data:image/png;base64," + pixel}}}
	got := decode[completion](t, c.do(t, c.newChat("create", []any{object{"role": "user", "content": content}}, nil)).result)
	wantEqual(t, "text", got.text(), "answer to: "+q)
	wantEqual(t, "images that the model got", c.imagesOf(q), 1)
	next := c.question("and now?")
	c.do(t, c.newChat("create", []any{object{"role": "user", "content": content}, assistant(got.text()), user(next)}, nil))
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
	wantEqual(t, "messages", len(c.log(t, c.session())), 4)
}

// imagesOf returns how many images the model got with the question.
func (c *conversation) imagesOf(q string) int {
	n := 0
	for _, r := range c.provider.Received() {
		if last := r.Messages[len(r.Messages)-1]; strings.Contains(last.Text, q) {
			n += len(last.Images)
		}
	}
	return n
}

func structured(t *testing.T, c *conversation) {
	schema := object{"type": "object", "properties": object{"city": object{"type": "string"}, "people": object{"type": "integer"}}, "required": []any{"city", "people"}, "additionalProperties": false}
	format := object{"type": "json_schema", "json_schema": object{"name": "town", "schema": schema, "strict": true}}
	got := decode[completion](t, c.do(t, c.newChat("create", []any{user(c.question("a town as JSON"))}, object{"response_format": format})).result)
	wantEqual(t, "text", got.text(), say("as JSON"))
}

// differentWords returns a text of so many words.
func differentWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	return strings.Join(words, " ")
}
