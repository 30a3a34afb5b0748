package conformance_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/seed"
)

// openAIScenarios are for the packages of OpenAI: what is not a chat completion.
func openAIScenarios() []scenario {
	return []scenario{
		{name: "file", run: fileContent},
		{name: "responses", run: responses},
		{name: "responses: settings", run: responseSettings},
		{name: "responses: stream", run: responseStream},
		{name: "responses: resumed stream", run: responseResumed},
		{name: "responses: Idempotency-Key", run: responseKey},
		{name: "responses: background and poll", run: responseBackground},
		{name: "responses: cancel", run: responseCancel},
		{name: "responses: server tool", run: responseTool},
		{name: "responses: branches", run: responseBranches},
		{name: "responses: errors", run: responseErrors},
		{name: "responses: image and file", run: responseFiles},
		{name: "conversations", run: conversations},
		{name: "conversations: items", run: conversationItems},
		{name: "conversations: pages of items", run: conversationPages},
		{name: "conversations: results and Idempotency-Keys", run: conversationKeys},
		{name: "responses and conversations of two owners", run: responseOwners},
		{name: "embeddings", run: embeddings},
		{name: "models", run: models},
	}
}

// response is a response as the clients return it.
type response struct {
	ID           string
	Status       string
	Output       []item
	Conversation struct{ ID string }
	Error        *struct{ Type, Code, Message string }
	Previous     string `json:"previous_response_id"`
	Background   bool
	Store        bool
	Model        string
	Instructions string
	Temperature  float64
	MaxTokens    int `json:"max_output_tokens"`
	Metadata     map[string]string
	Tools        []struct{ Name string }
	ToolChoice   any `json:"tool_choice"`
	Usage        *struct {
		Total int `json:"total_tokens"`
	}
}

// item is an item of a response or a conversation.
type item struct {
	ID, Type, Role, Status, Name, Arguments, Output string

	CallID  string `json:"call_id"`
	Content []struct{ Type, Text string }
}

// text returns the texts of the item.
func (i item) text() string {
	var texts []string
	for _, part := range i.Content {
		texts = append(texts, part.Text)
	}
	return strings.Join(texts, "\n")
}

// text returns the text of the response.
func (r response) text() string {
	var texts []string
	for _, i := range r.Output {
		if i.Type == "message" {
			texts = append(texts, i.text())
		}
	}
	return strings.Join(texts, "\n")
}

// responseEvent is an event of a response.
type responseEvent struct {
	Type     string
	Number   int64 `json:"sequence_number"`
	Index    int   `json:"output_index"`
	Delta    string
	Text     string
	Response response
}

// respond returns the response to the input.
func (c *conversation) respond(t *testing.T, input any, more object) response {
	t.Helper()
	return decode[response](t, c.do(t, c.newResponse("create", input, more)).result)
}

// newResponse returns a call for a response.
func (c *conversation) newResponse(method string, input any, more object) call {
	params := object{"model": c.model, "input": input}
	for name, value := range more {
		params[name] = value
	}
	return c.newCall("responses."+method, params)
}

func responses(t *testing.T, c *conversation) {
	q := c.question("hello")
	first := c.respond(t, q, object{"instructions": "Answer briefly."})
	wantEqual(t, "text", first.text(), "answer to: "+q)
	wantEqual(t, "status", first.Status, "completed")
	compare.True(t, first.Usage != nil && first.Usage.Total != 0, "got usage %+v, want tokens", first.Usage)
	next := c.question("next")
	second := c.respond(t, []any{user(next)}, object{"previous_response_id": first.ID})
	wantEqual(t, "text", second.text(), "answer to: "+next)
	wantEqual(t, "previous response", second.Previous, first.ID)
	wantEqual(t, "conversation", second.Conversation.ID, first.Conversation.ID)
	wantEqual(t, "messages", len(c.log(t, c.session())), 4)
	third := c.respond(t, c.question("third"), object{"conversation": first.Conversation.ID})
	wantEqual(t, "conversation", third.Conversation.ID, first.Conversation.ID)
	wantEqual(t, "messages", len(c.log(t, c.session())), 6)
	again := decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, first.ID)).result)
	wantEqual(t, "text of the first response later", again.text(), first.text())
	stateless := c.respond(t, c.question("stateless"), object{"store": false})
	wantEqual(t, "status of a response that is not stored", stateless.Status, "completed")
	wantEqual(t, "store", stateless.Store, false)
	wantEqual(t, "a response that is not stored, later", c.fail(t, c.newCall("responses.retrieve", nil, stateless.ID)).Status, http.StatusNotFound)
	wantEqual(t, "what follows it", c.fail(t, c.newResponse("create", q, object{"previous_response_id": stateless.ID})).Status, http.StatusNotFound)
}

// responseSettings is about what a response says of its request, now and later.
func responseSettings(t *testing.T, c *conversation) {
	c.model = "plain/small"
	before := c.respond(t, c.question("before"), nil)
	got := c.respond(t, c.question("hello"), object{
		"instructions": "Answer briefly.", "temperature": 0.5, "max_output_tokens": 100, "metadata": object{"topic": "looms"}, "background": true,
		"previous_response_id": before.ID, "tools": responseWeather(), "tool_choice": object{"type": "function", "name": "get_weather"},
	})
	for when, r := range map[string]response{"now": got, "later": decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, got.ID)).result)} {
		wantEqual(t, "previous response "+when, r.Previous, before.ID)
		wantEqual(t, "background "+when, r.Background, true)
		wantEqual(t, "metadata "+when, fmt.Sprint(r.Metadata), "map[topic:looms]")
		said := fmt.Sprintf("%s, %s, %v, %d, %v, %d tools, stored %v", r.Model, r.Instructions, r.Temperature, r.MaxTokens, r.ToolChoice, len(r.Tools), r.Store)
		wantEqual(t, "settings "+when, said, "plain/small, Answer briefly., 0.5, 100, map[name:get_weather type:function], 1 tools, stored true")
		if len(r.Tools) > 0 {
			wantEqual(t, "tool "+when, r.Tools[0].Name, "get_weather")
		}
	}
}

func responseStream(t *testing.T, c *conversation) {
	q := c.question("tell me at length")
	out := c.do(t, c.newResponse("stream", q, nil))
	final := decode[response](t, out.result)
	want := "answer to: " + say(q)
	wantEqual(t, "final text", final.text(), want)
	text, last := readEvents(t, out.events, -1)
	wantEqual(t, "deltas", text, want)
	wantEqual(t, "last event", last.Type, "response.completed")
	wantEqual(t, "log", path(c.log(t, c.session())), "user: "+q+"\nassistant: "+want)
}

// readEvents returns the text of the events and the last of them. Their numbers must rise.
func readEvents(t *testing.T, events []json.RawMessage, after int64) (text string, last responseEvent) {
	t.Helper()
	last.Number = after
	for _, raw := range events {
		e := decode[responseEvent](t, raw)
		must.True(t, e.Number > last.Number, "got the event %d after %d", e.Number, last.Number)
		last = e
		if e.Type == "response.output_text.delta" {
			text += e.Delta
		}
	}
	return text, last
}

// responseResumed has the connection break again and again; the client goes on behind the last
// event that it got.
func responseResumed(t *testing.T, c *conversation) {
	random := seed.Rand(t, 1)
	for range 3 {
		q := c.question("tell me at length")
		text, stored := c.streamWithCuts(t, q, random)
		wantEqual(t, "text of the client", text, stored)
		wantEqual(t, "stored text", stored, "answer to: "+say(q))
	}
}

// streamWithCuts asks for a response whose connection breaks at random places, and returns the text
// of the client and of the log.
func (c *conversation) streamWithCuts(t *testing.T, q string, random *rand.Rand) (text, stored string) {
	t.Helper()
	made := c.newResponse("create", q, object{"stream": true})
	id, last := "", responseEvent{Number: -1}
	for tries := 0; last.Type != "response.completed"; tries++ {
		if tries < 4 {
			made.Headers = maps.Clone(made.Headers)
			made.Headers[headerCut] = strconv.Itoa(random.IntN(6000)) // bytes after which the proxy cuts
		}
		out := await(t, c.cl.begin(t, made))
		piece, end := readEvents(t, out.events, last.Number)
		text += piece
		if last = end; id == "" && len(out.events) > 0 {
			id = decode[responseEvent](t, out.events[0]).Response.ID
		}
		if id == "" { // not even the first event came: the client sends its question again
			must.True(t, tries <= 10, "no stream begins: %s", out.fault)
			continue
		}
		params := object{"stream": true}
		if last.Number >= 0 {
			params["starting_after"] = last.Number
		}
		made = c.newCall("responses.retrieve", params, id)
	}
	return text, decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, id)).result).text()
}

func responseKey(t *testing.T, c *conversation) {
	first := c.respond(t, c.question("hello"), nil)
	for name, in := range map[string]object{
		"alone": nil, "in a conversation": {"conversation": first.Conversation.ID}, "behind another": {"previous_response_id": first.ID},
	} {
		made := c.newResponse("create", []any{user(c.question("before")), assistant("yes"), user(c.question(name))}, in)
		made.Headers["Idempotency-Key"] = "key of " + c.mark + name
		one := decode[response](t, c.do(t, made).result)
		id := c.session()
		before := len(c.log(t, id))
		again := decode[response](t, c.do(t, made).result)
		wantEqual(t, name+": the same response", again.ID+again.text(), one.ID+"answer to: "+c.question(name))
		wantEqual(t, name+": messages", len(c.log(t, id)), before)
		made.Params["input"] = c.question("another")
		wantEqual(t, name+": another request", c.fail(t, made).Code, "idempotency_key_reused")
		if name == "alone" {
			wantEqual(t, "conversation", c.respond(t, c.question("next"), object{"previous_response_id": one.ID}).Conversation.ID, one.Conversation.ID)
		}
	}
}

func responseBackground(t *testing.T, c *conversation) {
	held := c.question("held")
	gate := c.gates.add(t, held)
	begun := c.respond(t, held, object{"background": true})
	compare.True(t, begun.Status == "queued" || begun.Status == "in_progress", "got the status %s, want queued or in_progress", begun.Status)
	<-gate.asked
	get := func() response {
		return decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, begun.ID)).result)
	}
	wantEqual(t, "status of an unfinished response", get().Status, "in_progress")
	gate.release()
	process.Await(t, "the end of the response", func() bool { return get().Status == "completed" })
	wantEqual(t, "text", get().text(), "answer to: "+held)
}

func responseCancel(t *testing.T, c *conversation) {
	held := c.question("held")
	gate := c.gates.add(t, held)
	begun := c.respond(t, held, object{"background": true})
	<-gate.asked
	got := decode[response](t, c.do(t, c.newCall("responses.cancel", nil, begun.ID)).result)
	wantEqual(t, "status", got.Status, "cancelled") //nolint:misspell // as OpenAI writes it
	wantEqual(t, "partial text", strings.TrimSpace(got.text()), "answer to:")
	next := c.respond(t, c.question("next"), object{"previous_response_id": begun.ID})
	wantEqual(t, "status of the next response", next.Status, "completed")
	wantEqual(t, "messages", len(c.log(t, c.session())), 4)
}

func responseTool(t *testing.T, c *conversation) {
	c.model = "helper"
	q := c.question("use a tool")
	out := c.do(t, c.newResponse("stream", q, nil))
	final := decode[response](t, out.result)
	compare.True(t, len(final.Output) == 1 && final.Output[0].text() == "answer to: "+q, "got the output %+v, want the answer alone", final.Output)
	var all []int
	for _, raw := range out.events {
		if e := decode[responseEvent](t, raw); e.Type == "response.output_item.added" {
			all = append(all, e.Index)
		}
	}
	wantEqual(t, "indexes of the items", fmt.Sprint(all), "[0]")
	compare.Equal(t, "messages: want a question, a call, its result, an answer", 4, len(c.log(t, c.session())))
	wantEqual(t, "output later", len(decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, final.ID)).result).Output), 1)
}

func responseBranches(t *testing.T, c *conversation) {
	first := c.respond(t, c.question("one"), nil)
	c.respond(t, c.question("two"), object{"previous_response_id": first.ID})
	id := c.session()
	other := c.question("another two")
	c.respond(t, other, object{"previous_response_id": first.ID})
	messages := c.log(t, id)
	wantEqual(t, "messages", len(messages), 6)
	wantEqual(t, "path", path(messages), strings.Join([]string{"user: " + c.question("one"), "assistant: answer to: " + c.question("one"), "user: " + other, "assistant: answer to: " + other}, "\n"))
}

func responseErrors(t *testing.T, c *conversation) {
	tests := []struct {
		name   string
		made   call
		status int
		code   string
		param  string
	}{
		{"unknown model", c.newResponse("create", "hello", object{"model": "gpt-5"}), http.StatusNotFound, "model_not_found", ""},
		{"unknown response", c.newCall("responses.retrieve", nil, "resp_x"), http.StatusNotFound, "not_found", ""},
		{"bad name of a tool", c.newResponse("create", "hello", object{"tools": []any{object{"type": "function", "name": "no name", "parameters": object{}, "strict": false}}}), http.StatusBadRequest, "invalid", "tools[0].name"},
		{"bad schema", c.newResponse("create", "hello", object{"text": object{"format": object{"type": "json_schema", "name": "x"}}}), http.StatusBadRequest, "invalid", "text.format.schema"},
		{"bad effort", c.newResponse("create", "hello", object{"reasoning": object{"effort": "huge"}}), http.StatusBadRequest, "invalid", "reasoning.effort"},
		{"too long instructions", c.newResponse("create", "hello", object{"instructions": strings.Repeat("x", 300<<10)}), http.StatusBadRequest, "invalid", "instructions"},
		{"empty text", c.newResponse("create", "", nil), http.StatusBadRequest, "invalid", "input"},
		{"too long for the window", c.newResponse("create", c.question("hello"), object{"model": "reader", "instructions": differentWords(10_000)}), http.StatusBadRequest, "context_length_exceeded", ""},
		{"tool of OpenAI", c.newResponse("create", "hello", object{"tools": []any{object{"type": "web_search"}}}), http.StatusBadRequest, "invalid", "tools[0].type"},
	}
	for _, tt := range tests {
		got := c.fail(t, tt.made)
		if got.Status != tt.status || tt.code != "" && got.Code != tt.code || got.Param != tt.param {
			t.Errorf("%s: got %s, want %d %s, param %q", tt.name, got, tt.status, tt.code, tt.param)
		}
	}
	if failed := c.fail(t, c.newResponse("create", c.question(breakAlways), nil)); failed.Status < http.StatusInternalServerError || failed.Message == "" {
		t.Errorf("a failed run: got %s, want an error of the server", failed)
	}
	out := c.do(t, c.newResponse("create", c.question(breakAlways), object{"stream": true}))
	if _, last := readEvents(t, out.events, -1); last.Type != "response.failed" || last.Response.Error == nil || last.Response.Error.Message == "" || last.Response.Error.Type != "server_error" {
		t.Errorf("got the last event %+v, want response.failed with its error", last)
	}
}

func responseFiles(t *testing.T, c *conversation) {
	q := c.question("what is in these?")
	content := []any{
		object{"type": "input_text", "text": q},
		object{"type": "input_image", "image_url": "data:image/png;base64," + pixel, "detail": "auto"},
		object{"type": "input_file", "filename": "notes.txt", "file_data": "data:text/plain;base64,dGhlIGxvb20gaXMgYmx1ZQ=="},
	}
	got := c.respond(t, []any{object{"role": "user", "content": content}}, nil)
	wantEqual(t, "status", got.Status, "completed")
	wantEqual(t, "images that the model got", c.imagesOf(q), 1)
	c.wantSeen(t, q, "the loom is blue")
}

func fileContent(t *testing.T, c *conversation) {
	c.inSession()
	q := c.question("what is in this file?")
	for _, tt := range []struct {
		text, data, history string
		messages            int
	}{
		{"the loom is blue", "dGhlIGxvb20gaXMgYmx1ZQ==", "append", 2},
		{"the loom is red", "dGhlIGxvb20gaXMgcmVk", "branch", 4}, // another question: its file is another one
		{"the loom is blue", "dGhlIGxvb20gaXMgYmx1ZQ==", "branch", 5},
	} {
		content := []any{
			object{"type": "text", "text": q},
			object{"type": "file", "file": object{"filename": "notes.txt", "file_data": "data:text/plain;base64," + tt.data}},
		}
		c.do(t, c.newChat("create", []any{object{"role": "user", "content": content}}, nil))
		wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), tt.history)
		wantEqual(t, "messages", len(c.log(t, c.session())), tt.messages)
		c.wantSeen(t, q, tt.text)
	}
}

// wantSeen checks that the model got the text together with the question.
func (c *conversation) wantSeen(t *testing.T, q, text string) {
	t.Helper()
	for _, r := range c.provider.Received() {
		if body := string(r.Body); strings.Contains(body, q) && strings.Contains(body, text) {
			return
		}
	}
	t.Errorf("the model did not get %q", text)
}

func responseOwners(t *testing.T, c *conversation) {
	first := c.respond(t, c.question("hello"), nil)
	conversation, id := first.Conversation.ID, c.session()
	for _, made := range []call{
		c.newCall("responses.retrieve", nil, first.ID),
		c.newCall("responses.retrieve", object{"stream": true}, first.ID),
		c.newCall("responses.cancel", nil, first.ID),
		c.newResponse("create", "mine?", object{"previous_response_id": first.ID}),
		c.newResponse("create", "mine?", object{"conversation": conversation}),
		c.newCall("conversations.retrieve", nil, conversation),
		c.newCall("conversations.update", object{"metadata": object{"x": "y"}}, conversation),
		c.newCall("conversations.items.list", object{}, conversation),
		c.newCall("conversations.items.create", object{"items": []any{user("x")}}, conversation),
		c.newCall("conversations.delete", nil, conversation),
	} {
		made.Key = bobKey
		compare.Equal(t, made.Method+": want 404", http.StatusNotFound, c.fail(t, made).Status)
	}
	wantEqual(t, "messages of Alice", len(c.log(t, id)), 2)
}

func embeddings(t *testing.T, c *conversation) {
	type list struct {
		Data []struct {
			Index     int
			Embedding json.RawMessage
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	const model = "hashing-384-v1"
	input := []any{"the loom", "the shuttle"}
	decoded := decode[list](t, c.do(t, c.newCall("embeddings.create", object{"model": model, "input": input})).result) // asks for base64
	floats := decode[list](t, c.do(t, c.newCall("embeddings.create", object{"model": model, "input": input, "encoding_format": "float"})).result)
	if len(decoded.Data) != 2 || len(floats.Data) != 2 || floats.Usage.Prompt == 0 {
		t.Fatalf("got %d and %d vectors, %d tokens", len(decoded.Data), len(floats.Data), floats.Usage.Prompt)
	}
	for i := range input {
		a, b := decode[[]float32](t, decoded.Data[i].Embedding), decode[[]float32](t, floats.Data[i].Embedding)
		must.True(t, len(a) == 384 && len(b) == 384, "got %d and %d numbers, want 384", len(a), len(b))
		for k := range a {
			wantEqual(t, "number", a[k], b[k])
		}
	}
	wantEqual(t, "unknown model", c.fail(t, c.newCall("embeddings.create", object{"model": "none", "input": "x"})).Code, "model_not_found")
}

func models(t *testing.T, c *conversation) {
	type model struct{ ID, Object string }
	list := c.newCall("models.list", nil)
	list.All = true
	var names []string
	for _, m := range decode[[]model](t, c.do(t, list).result) {
		names = append(names, m.ID)
	}
	got := " " + strings.Join(names, " ") + " "
	for _, want := range []string{"plain", "careful", "plain/small"} {
		compare.Contains(t, "models", " "+want+" ", got)
	}
	one := decode[model](t, c.do(t, c.newCall("models.retrieve", nil, "plain/small")).result)
	wantEqual(t, "model", one.ID, "plain/small")
	wantEqual(t, "unknown model", c.fail(t, c.newCall("models.retrieve", nil, "gpt-5")).Code, "model_not_found")
}

func langChainStructured(t *testing.T, c *conversation) {
	schema := object{"title": "town", "type": "object", "properties": object{"city": object{"type": "string"}, "people": object{"type": "integer"}}, "required": []any{"city", "people"}}
	got := c.do(t, c.newChat("create", []any{user(c.question("a town as JSON"))}, object{"schema": schema}))
	town := decode[struct {
		City   string
		People int
	}](t, got.result)
	compare.True(t, town.City == "Bonn" && town.People == 340000, "got %+v, want Bonn", town)
}
