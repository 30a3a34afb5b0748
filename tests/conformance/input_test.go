package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// badInput is a request that is refused.
type badInput struct {
	name, method, path, body string
	status                   int
	param                    string // a part of the field that the error names
}

// openAIError is an error as all clients of the protocol read it.
type openAIError struct {
	Error *struct {
		Message string
		Type    string
		Param   *string
		Code    *string
	}
}

// maxPeak bounds what the process takes while it gets bad input, in bytes.
const maxPeak = 400 << 20

// Bad input gets an error in the protocol's own shape, whatever it is, that says what to change
// and nothing internal. Memory stays bounded.
func TestBadInput(t *testing.T) {
	t.Parallel()
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t))
	inputs := append(badChats(), append(badResponses(), badOthers()...)...)
	for _, in := range inputs {
		status, body := b.send(t, in)
		var got openAIError
		if err := json.Unmarshal(body, &got); err != nil || got.Error == nil || got.Error.Message == "" || got.Error.Type == "" || got.Error.Code == nil {
			t.Errorf("%s: got %d %.300s, want an error of the protocol", in.name, status, body)
			continue
		}
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if status != in.status || !strings.Contains(param, in.param) {
			t.Errorf("%s: got %d, param %q: %.300s; want %d, param %q", in.name, status, param, body, in.status, in.param)
		}
		if bad := regexp.MustCompile(`goroutine|\.go:|bobbin/app|sqlite|SQLSTATE|127\.0\.0\.1|panic`).Find(body); bad != nil || len(body) > 4096 {
			t.Errorf("%s: got %d bytes with %q: %.300s", in.name, len(body), bad, body)
		}
	}
	if sessions, err := apiclient.Call(t.Context(), b, ops.ListSessions, core.SessionQuery{}); err != nil || len(sessions.Items) > 0 {
		t.Errorf("got %d sessions of what was refused, %v; want none", len(sessions.Items), err)
	}
	// Text that is no Unicode becomes text that is.
	half := badInput{method: "POST", path: "chat/completions", body: `{"model":"plain","messages":[{"role":"user","content":"half \ud83d of a pair, \u0000 and \u202e"}]}`}
	if status, body := b.send(t, half); status != http.StatusOK || !strings.Contains(string(body), "half \ufffd of a pair") {
		t.Errorf("half a surrogate: got %d %s, want an answer with the replacement character", status, body)
	}
	peak := b.peakMemory(t)
	t.Logf("%d bad inputs; the process took at most %d MiB", len(inputs), peak>>20)
	compare.True(t, peak <= maxPeak, "the process took %d MiB, want at most %d", peak>>20, maxPeak>>20)
}

// send sends the request as Alice and returns the answer.
func (b *bobbin) send(t *testing.T, in badInput) (int, []byte) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), in.method, "http://"+b.addr+"/v1/"+in.path, strings.NewReader(in.body)))(t)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+aliceKey)
	response := must.Get(http.DefaultClient.Do(r))(t)
	defer response.Body.Close()
	body := must.Get(io.ReadAll(response.Body))(t)
	return response.StatusCode, body
}

// peakMemory returns the most memory that the process has taken, 0 where the system does not say.
func (b *bobbin) peakMemory(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.server.PID()))
	if err != nil {
		return 0
	}
	found := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0
	}
	kilobytes := must.Get(strconv.ParseInt(string(found[1]), 10, 64))(t)
	return kilobytes << 10
}

// repeat returns a list of n times the JSON value.
func repeat(value string, n int) string {
	return "[" + strings.Repeat(value+",", n-1) + value + "]"
}

// deep returns JSON of so many lists in each other.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// manyKeys returns an object with n keys.
func manyKeys(n int) string {
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf(`"k%d":"v"`, i))
	}
	return "{" + strings.Join(keys, ",") + "}"
}

func badChats() []badInput {
	const hello = `{"role":"user","content":"hello"}`
	tool := `{"type":"function","function":{"name":"t","parameters":{"type":"object"}}}`
	chat := func(fields string) string { return `{"model":"plain","messages":[` + hello + `],` + fields + `}` }
	messages := func(list string) string { return `{"model":"plain","messages":` + list + `}` }
	content := func(c string) string { return messages(`[{"role":"user","content":` + c + `}]`) }
	list := []badInput{
		{name: "not JSON", body: `{"model"`},
		{name: "a list", body: `[]`},
		{name: "null", body: `null`},
		{name: "nothing", body: ``},
		{name: "no messages", body: `{"model":"plain"}`, param: "messages"},
		{name: "no model", body: `{"messages":[` + hello + `]}`, param: "model"},
		{name: "model of a wrong type", body: `{"model":7,"messages":[` + hello + `]}`, param: "model"},
		{name: "messages of a wrong type", body: messages(`{"role":"user"}`), param: "messages"},
		{name: "a message of a wrong type", body: messages(`["hello"]`), param: "messages"},
		{name: "unknown role", body: messages(`[{"role":"king","content":"x"}]`), param: "messages[0].role"},
		{name: "content of a wrong type", body: content(`7`), param: "messages"},
		{name: "unknown part", body: content(`[{"type":"video"}]`), param: "messages"},
		{name: "image from elsewhere", body: content(`[{"type":"image_url","image_url":{"url":"http://169.254.169.254/"}}]`), param: "messages"},
		{name: "broken base64", body: content(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,%%%"}}]`), param: "messages[].content[0]"},
		{name: "a file of somebody else", body: content(`[{"type":"file","file":{"file_id":"../../etc/passwd"}}]`), status: http.StatusNotFound},
		{name: "too many files", body: content(repeat(`{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,aGVsbG8="}}`, 500))},
		{name: "100,000 messages", body: messages(repeat(hello, 100_000))},
		{name: "10,000 tools", body: chat(`"tools":` + repeat(tool, 10_000)), param: "tools"},
		{name: "a schema of 1 MiB", body: chat(`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","description":"` + strings.Repeat("x", 1<<20) + `"}}}`)},
		{name: "a tool with a schema of 1 MiB", body: chat(`"tools":[{"type":"function","function":{"name":"t","parameters":{"description":"` + strings.Repeat("x", 1<<20) + `"}}}]`)},
		{name: "a deep schema", body: chat(`"tools":[{"type":"function","function":{"name":"t","parameters":{"x":` + deep(9000) + `}}}]`)},
		{name: "deep JSON", body: chat(`"unknown":` + deep(1_000_000))},
		{name: "deep content", body: content(deep(100_000))},
		{name: "a tool that is no function", body: chat(`"tools":[{"type":"code_interpreter"}]`), param: "tools[0].type"},
		{name: "a tool without a name", body: chat(`"tools":[{"type":"function","function":{}}]`), param: "tools[0].function.name"},
		{name: "two tools of one name", body: chat(`"tools":[` + tool + `,` + tool + `]`), param: "tools"},
		{name: "a choice that is none", body: chat(`"tool_choice":"sometimes"`), param: "tool_choice"},
		{name: "a choice of a wrong type", body: chat(`"tool_choice":7`), param: "tool_choice"},
		{name: "two answers", body: chat(`"n":2`), param: "n"},
		{name: "functions of old", body: chat(`"functions":[]`), param: "functions"},
		{name: "audio", body: chat(`"modalities":["audio"]`), param: "modalities"},
		{name: "temperature of a wrong type", body: chat(`"temperature":"hot"`), param: "temperature"},
		{name: "temperature out of range", body: chat(`"temperature":9`), param: "temperature"},
		{name: "stream of a wrong type", body: chat(`"stream":"yes"`), param: "stream"},
		{name: "tokens below zero", body: chat(`"max_tokens":-1`), param: "max_tokens"},
		{name: "tokens below zero, newer", body: chat(`"max_completion_tokens":-1`), param: "max_completion_tokens"},
		{name: "stops without end", body: chat(`"stop":` + repeat(`"x"`, 1000)), param: "stop"},
		{name: "response format of a wrong type", body: chat(`"response_format":{"type":"yaml"}`), param: "response_format.type"},
		{name: "a response format without a schema", body: chat(`"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`), param: "response_format.json_schema.schema"},
		{name: "metadata of a wrong type", body: chat(`"metadata":{"session_id":7}`), param: "metadata"},
		{name: "a long session id", body: chat(`"metadata":{"session_id":"` + strings.Repeat("x", 300) + `"}`), param: "session_id"},
		{name: "a session id with a line break", body: chat(`"metadata":{"session_id":"a\nb"}`), param: "session_id"},
		{name: "a session of nobody", body: chat(`"metadata":{"session_id":"01a206b9-a4c4-7ed6-aea7-ec47974f15b1"}`), status: http.StatusNotFound},
		{name: "an unknown agent", body: `{"model":"` + strings.Repeat("x", 100_000) + `","messages":[` + hello + `]}`, status: http.StatusNotFound},
		{name: "a result without an id", body: messages(`[` + hello + `,{"role":"tool","content":"1"}]`), param: "tool_call_id"},
		{name: "10,000 results without calls", body: messages(`[` + hello + `,` + strings.Trim(repeat(`{"role":"tool","tool_call_id":"x","content":"1"}`, 10_000), "[]") + `]`), param: "messages"},
		{name: "too large", body: chat(`"user":"` + strings.Repeat("x", 65<<20) + `"`), status: http.StatusRequestEntityTooLarge},
	}
	return complete(list, "POST", "chat/completions")
}

// complete sets what most inputs have.
func complete(list []badInput, method, path string) []badInput {
	for i := range list {
		if list[i].method == "" {
			list[i].method = method
		}
		if list[i].path == "" {
			list[i].path = path
		}
		if list[i].status == 0 {
			list[i].status = http.StatusBadRequest
		}
	}
	return list
}

func badResponses() []badInput {
	const conversation = "conversations/conv_01a206b9-a4c4-7ed6-aea7-ec47974f15b1"
	respond := func(fields string) string { return `{"model":"plain","input":"hello",` + fields + `}` }
	input := func(list string) string { return `{"model":"plain","input":` + list + `}` }
	return complete([]badInput{
		{name: "no input", body: `{"model":"plain"}`, param: "input"},
		{name: "input of a wrong type", body: input(`7`), param: "input"},
		{name: "unknown item", body: input(`[{"type":"computer_call"}]`), param: "input[0].type"},
		{name: "unknown part of an item", body: input(`[{"role":"user","content":[{"type":"input_audio"}]}]`), param: "input"},
		{name: "an image of elsewhere", body: input(`[{"role":"user","content":[{"type":"input_image","image_url":"file:///etc/passwd"}]}]`), param: "input"},
		{name: "an output without a call", body: input(`[{"type":"function_call_output","call_id":"x","output":"1"}]`)},
		{name: "100,000 items", body: input(repeat(`{"role":"user","content":"x"}`, 100_000))},
		{name: "deep input", body: input(deep(1_000_000))},
		{name: "deep output", body: input(`[{"type":"function_call_output","call_id":"x","output":` + deep(9_000) + `}]`)},
		{name: "a format without a schema", body: respond(`"text":{"format":{"type":"json_schema","name":"x"}}`), param: "text.format.schema"},
		{name: "tokens below zero", body: respond(`"max_output_tokens":-1`), param: "max_output_tokens"},
		{name: "a tool without a name", body: respond(`"tools":[{"type":"function"}]`), param: "tools[0].name"},
		{name: "an effort that is none", body: respond(`"reasoning":{"effort":"` + strings.Repeat("x", 100) + `"}`), param: "reasoning.effort"},
		{name: "broken base64 of an item", body: input(`[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,%%%"}]}]`), param: "input[].content[0]"},
		{name: "both contexts", body: respond(`"conversation":"conv_x","previous_response_id":"resp_x"`), param: "previous_response_id"},
		{name: "conversation of a wrong type", body: respond(`"conversation":7`), param: "conversation"},
		{name: "metadata with 17 keys", body: respond(`"metadata":` + manyKeys(17)), param: "metadata"},
		{name: "metadata with a long value", body: respond(`"metadata":{"k":"` + strings.Repeat("x", 513) + `"}`), param: "metadata"},
		{name: "metadata with U+0000", body: respond(`"metadata":{"k":"a\u0000b"}`), param: "metadata"},
		{name: "unknown conversation", body: respond(`"conversation":"conv_01a206b9-a4c4-7ed6-aea7-ec47974f15b1"`), status: http.StatusNotFound},
		{name: "unknown previous response", body: respond(`"previous_response_id":"resp_../../x"`), status: http.StatusNotFound},
		{name: "no id of a response", method: "GET", path: "responses/..%2f..%2fetc", status: http.StatusNotFound},
		{name: "a response of nobody", method: "GET", path: "responses/resp_01a206b9a4c47ed6aea7ec47974f15b1_9223372036854775807", status: http.StatusNotFound},
		{name: "a response after nothing", method: "GET", path: "responses/resp_01a206b9a4c47ed6aea7ec47974f15b1_99999999999999999999", status: http.StatusNotFound},
		{name: "cancel of nobody's response", path: "responses/resp_01a206b9a4c47ed6aea7ec47974f15b1/cancel", status: http.StatusNotFound},
		{name: "unknown conversation's items", method: "GET", path: conversation + "/items", status: http.StatusNotFound},
		{name: "unknown conversation deleted", method: "DELETE", path: conversation, status: http.StatusNotFound},
		{name: "metadata of a wrong type", path: "conversations", body: `{"metadata":7}`, param: "metadata"},
		{name: "items of a wrong type", path: "conversations", body: `{"items":{}}`, param: "items"},
		{name: "an unknown role", path: "conversations", body: `{"items":[{"role":"king","content":"x"}]}`, param: "items[0].role"},
		{name: "an unknown item of a conversation", path: "conversations", body: `{"items":[{"role":"user","content":"x"},{"type":"computer_call"}]}`, param: "items[1].type"},
		{name: "a result without an output", path: "conversations", body: `{"items":[{"type":"function_call_output","call_id":"x"}]}`, param: "items[0].output"},
		{name: "100,000 items of a conversation", path: "conversations", body: `{"items":` + repeat(`{"role":"user","content":"x"}`, 100_000) + `}`},
	}, "POST", "responses")
}

func badOthers() []badInput {
	embed := func(fields string) string { return `{"model":"hashing-384-v1",` + fields + `}` }
	return complete([]badInput{
		{name: "no input", body: embed(`"encoding_format":"float"`), param: "input"},
		{name: "tokens", body: embed(`"input":[1,2,3]`), param: "input"},
		{name: "3,000 texts", body: embed(`"input":` + repeat(`"x"`, 3000)), param: "input"},
		{name: "2 MiB", body: embed(`"input":"` + strings.Repeat("x", 2<<20) + `"`), param: "input"},
		{name: "an empty text", body: embed(`"input":[""]`), param: "input"},
		{name: "unknown format", body: embed(`"input":"x","encoding_format":"hex"`), param: "encoding_format"},
		{name: "other dimensions", body: embed(`"input":"x","dimensions":7`), param: "dimensions"},
		{name: "unknown embedding model", body: `{"model":"x","input":"x"}`, status: http.StatusNotFound},
		{name: "unknown path", method: "GET", path: "assistants", status: http.StatusNotFound},
		{name: "unknown method", method: "DELETE", path: "models", status: http.StatusMethodNotAllowed},
		{name: "unknown model", method: "GET", path: "models/..%2f..%2fx", status: http.StatusNotFound},
	}, "POST", "embeddings")
}

func conversations(t *testing.T, c *conversation) {
	type conversationObject struct {
		ID       string
		Metadata map[string]string
		Deleted  bool
	}
	made := decode[conversationObject](t, c.do(t, c.newCall("conversations.create", object{"metadata": object{"topic": "looms"}})).result)
	wantEqual(t, "metadata", made.Metadata["topic"], "looms")
	q := c.question("hello")
	wantEqual(t, "text", c.respond(t, q, object{"conversation": made.ID}).text(), "answer to: "+q)
	wantEqual(t, "conversation as an object", c.respond(t, q, object{"conversation": object{"id": made.ID}}).Conversation.ID, made.ID)
	changed := decode[conversationObject](t, c.do(t, c.newCall("conversations.update", object{"metadata": object{"topic": "threads"}}, made.ID)).result)
	wantEqual(t, "metadata", changed.Metadata["topic"], "threads")
	got := decode[conversationObject](t, c.do(t, c.newCall("conversations.retrieve", nil, made.ID)).result)
	wantEqual(t, "metadata", got.Metadata["topic"], "threads")
	if gone := decode[conversationObject](t, c.do(t, c.newCall("conversations.delete", nil, made.ID)).result); !gone.Deleted {
		t.Errorf("got %+v, want a deleted conversation", gone)
	}
	for name, later := range map[string]call{
		"the conversation": c.newCall("conversations.retrieve", nil, made.ID), "its items": c.newCall("conversations.items.list", nil, made.ID),
		"a response": c.newResponse("create", q, object{"conversation": made.ID}), "deleting it again": c.newCall("conversations.delete", nil, made.ID),
	} {
		wantEqual(t, name+" after its deletion", c.fail(t, later).Status, http.StatusNotFound)
	}
}

func conversationItems(t *testing.T, c *conversation) {
	one, two := c.question("one"), c.question("two")
	made := decode[struct{ ID string }](t, c.do(t, c.newCall("conversations.create", object{"items": []any{user(one), assistant("uno")}})).result)
	c.do(t, c.newCall("conversations.items.create", object{"items": []any{user(two), assistant("due")}}, made.ID))
	for range 5 {
		c.respond(t, c.question("three"), object{"conversation": made.ID})
	}
	list := c.newCall("conversations.items.list", object{"limit": 3, "order": "asc"}, made.ID)
	list.All = true
	items := decode[[]item](t, c.do(t, list).result)
	if len(items) != 14 || items[0].text() != one || items[1].text() != "uno" || items[2].text() != two || items[13].Role != "assistant" {
		t.Fatalf("got the items %+v, want 14, the oldest first", items)
	}
	list.Params["order"] = "desc"
	if back := decode[[]item](t, c.do(t, list).result); len(back) != 14 || back[0].ID != items[13].ID || back[13].ID != items[0].ID {
		t.Errorf("got %d items, want the same the other way round", len(back))
	}
	byID := object{"conversation_id": made.ID}
	got := decode[item](t, c.do(t, c.newCall("conversations.items.retrieve", byID, items[2].ID)).result)
	wantEqual(t, "text of one item", got.text(), two)
	c.do(t, c.newCall("conversations.items.delete", byID, items[2].ID))
	if after := decode[[]item](t, c.do(t, list).result); len(after) > 0 && strings.Contains(after[11].text(), two) {
		t.Errorf("got %+v, want the text gone", after[11])
	}
}

// conversationPages reads the items of tools page by page: several are of one message.
func conversationPages(t *testing.T, c *conversation) {
	c.model = "helper"
	c.respond(t, c.question("use a tool"), nil)
	id := "conv_" + string(c.session())
	calls := c.respond(t, c.question("the weather of both"), object{"conversation": id, "tools": responseWeather()})
	list := c.newCall("conversations.items.list", object{"limit": 100, "order": "asc"}, id)
	list.All = true
	want := decode[[]item](t, c.do(t, list).result)
	var types []string
	for _, i := range want {
		types = append(types, i.Type)
	}
	wantEqual(t, "items", strings.Join(types, " "), "message function_call function_call_output message message function_call function_call")
	wantEqual(t, "id of a call in its response", calls.Output[len(calls.Output)-1].ID, want[len(want)-1].ID)
	for _, order := range []string{"asc", "desc"} {
		for _, limit := range []int{1, 2} {
			list.Params = object{"limit": limit, "order": order}
			compare.Equal(t, fmt.Sprintf("%s, limit %d:", order, limit), want, decode[[]item](t, c.do(t, list).result))
			first := list
			first.All = false
			page := decode[struct{ Data []item }](t, c.do(t, first).result)
			wantEqual(t, "items of a page", len(page.Data), limit)
		}
		slices.Reverse(want)
	}
	byID := object{"conversation_id": id}
	for _, i := range want {
		got := decode[item](t, c.do(t, c.newCall("conversations.items.retrieve", byID, i.ID)).result)
		wantEqual(t, "item by its id", got.ID, i.ID)
	}
	wantEqual(t, "unknown call", c.fail(t, c.newCall("conversations.items.retrieve", byID, want[1].ID+"x")).Status, http.StatusNotFound)
	c.do(t, c.newCall("responses.cancel", nil, calls.ID)) // a session with a run cannot be changed
	c.do(t, c.newCall("conversations.items.delete", byID, want[1].ID))
	wantEqual(t, "item that was deleted", c.fail(t, c.newCall("conversations.items.retrieve", byID, want[1].ID)).Status, http.StatusNotFound)
}

// conversationKeys adds calls and results of the client's own tools, each request twice with one key: what
// it adds is there once. A request that is refused leaves nothing.
func conversationKeys(t *testing.T, c *conversation) {
	q := c.question("what is the answer?")
	items := func(call string) object {
		return object{"metadata": object{"topic": "looms"}, "items": []any{
			user(q), object{"type": "function_call", "call_id": call, "name": "look_up", "arguments": `{"a":1}`},
			object{"type": "function_call_output", "call_id": call, "output": "42"}, assistant("It is 42."),
		}}
	}
	once := func(made call) (first outcome) {
		made.Headers["Idempotency-Key"] = "key of " + c.mark + made.Method
		first = c.do(t, made)
		wantEqual(t, made.Method+" again", string(c.do(t, made).result), string(first.result))
		made.Params = object{"items": []any{user("another")}}
		wantEqual(t, made.Method+" with another body", c.fail(t, made).Code, "idempotency_key_reused")
		return first
	}
	id := decode[struct{ ID string }](t, once(c.newCall("conversations.create", items("c1"))).result).ID
	adding := items("c2")
	delete(adding, "metadata")
	added := decode[struct{ Data []item }](t, once(c.newCall("conversations.items.create", adding, id)).result).Data
	list := c.newCall("conversations.items.list", object{"order": "asc"}, id)
	list.All = true
	all := decode[[]item](t, c.do(t, list).result)
	if diff := cmp.Diff(all[min(4, len(all)):], added); diff != "" || len(all) != 8 {
		t.Fatalf("got %d items, want 8, of which the last 4 were added: %s", len(all), diff)
	}
	wantEqual(t, "the call", added[1].CallID+added[1].Name+added[1].Arguments, `c2look_up{"a":1}`)
	wantEqual(t, "its result", added[2].CallID+added[2].Output, "c242")
	next := c.question("and now?")
	wantEqual(t, "text behind them", c.respond(t, next, object{"conversation": id}).text(), "answer to: "+next)

	orphan := []any{object{"type": "function_call_output", "call_id": "c3", "output": "43"}}
	c.fail(t, c.newCall("conversations.items.create", object{"items": orphan}, id))
	c.fail(t, c.newCall("conversations.create", object{"items": orphan, "metadata": object{"user_id": c.mark}}))
	left := must.Get(apiclient.Call(t.Context(), c, ops.ListSessions, core.SessionQuery{UserID: c.mark}))(t)
	wantEqual(t, "sessions of refused conversations", len(left.Items), 0)
}
