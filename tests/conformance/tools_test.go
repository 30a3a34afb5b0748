package conformance_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	apiclient "bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// toolScenarios are about tools that the client executes. All clients have them.
func toolScenarios() []scenario {
	return []scenario{
		{name: "client tool, stateless", run: clientTool},
		{name: "client tools in a session", run: clientToolsInSession},
		{name: "client tool beside a server tool", run: clientToolBesideServerTool},
		{name: "client tool left alone", run: clientToolLeftAlone},
		{name: "result of a client tool with a message", run: resultWithMessage},
		{name: "results of client tools that nobody waits for", run: unknownResults},
		{name: "tool choice", run: toolChoice},
	}
}

// callTools is how the model calls tools: the calculator for a question with the word tool, the
// client's weather for one with the word weather, twice at the same time for both, and again
// after the results for twice, and for forced if they must.
func callTools(r provider.Received) []provider.Call {
	results, question := 0, ""
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			results, question = 0, m.Text
		case "tool":
			results++
		}
	}
	var calls []provider.Call
	weather := func(city string) {
		calls = append(calls, provider.Call{ID: fmt.Sprintf("call_w%d", results+len(calls)), Name: "get_weather", Arguments: `{"city":"` + city + `"}`})
	}
	for _, tool := range r.Tools {
		switch {
		case tool.Name == "final_result" && results > 0 && r.ToolChoice == "required": // pydantic-ai's
			calls = append(calls, provider.Call{ID: "call_final", Name: tool.Name, Arguments: say("as JSON")})
		case results == 0 && tool.Name == "calculator" && strings.Contains(question, "tool"):
			calls = append(calls, provider.Call{ID: "call_calculator", Name: tool.Name, Arguments: `{"expression": "6 * 7"}`})
		case tool.Name == "get_weather" && strings.Contains(question, "weather") && (results == 0 || results == 1 && (strings.Contains(question, "twice") || strings.Contains(question, "forced") && r.ToolChoice == "required")):
			weather("Bonn")
			if strings.Contains(question, "both") {
				weather("Köln")
			}
		}
	}
	return calls
}

// weatherTool is a tool of the client.
func weatherTool() object {
	parameters := object{"type": "object", "properties": object{"city": object{"type": "string"}}, "required": []any{"city"}}
	return object{"type": "function", "function": object{"name": "get_weather", "description": "The weather of a city.", "parameters": parameters}}
}

// weather is what the client's tool returns.
func weather(call toolCall) string {
	var arguments struct{ City string }
	_ = json.Unmarshal([]byte(call.Function.Arguments), &arguments) // the answer then has no city
	return "sunny in " + arguments.City
}

// askWith sends the history with the client's tools and adds the answer.
func (c *conversation) askWith(t *testing.T, method string) completion {
	t.Helper()
	got := decode[completion](t, c.do(t, c.newChat(method, c.history, object{"tools": []any{weatherTool()}})).result)
	said := object{"role": "assistant", "content": got.text()}
	if calls := got.Choices[0].Message.ToolCalls; len(calls) > 0 {
		said["content"], said["tool_calls"] = nil, calls
	}
	c.history = append(c.history, said)
	return got
}

// execute executes the calls of an answer as the client does, and adds the results.
func (c *conversation) execute(t *testing.T, got completion, want int) {
	t.Helper()
	calls := got.Choices[0].Message.ToolCalls
	if len(calls) != want || got.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("got %d calls, finish reason %s, want %d calls", len(calls), got.Choices[0].FinishReason, want)
	}
	for _, one := range calls {
		wantEqual(t, "tool", one.Function.Name, "get_weather")
		c.history = append(c.history, object{"role": "tool", "tool_call_id": one.ID, "content": weather(one)})
	}
}

func clientTool(t *testing.T, c *conversation) {
	for _, method := range []string{"create", "stream"} {
		q := c.question("the weather twice, " + method)
		c.history = append(c.history, user(q))
		for range 2 {
			c.execute(t, c.askWith(t, method), 1)
		}
		got := c.askWith(t, method)
		wantEqual(t, "text", got.text(), "answer to: "+q)
		wantEqual(t, "finish reason", got.Choices[0].FinishReason, "stop")
		c.wantSeen(t, q, "sunny in Bonn")
	}
	wantEqual(t, "messages of the client", len(c.history), 12)
}

func clientToolsInSession(t *testing.T, c *conversation) {
	c.inSession()
	q := c.question("the weather of both")
	c.history = []any{user(q)}
	got := c.askWith(t, "stream")
	id := c.session()
	c.execute(t, got, 2)
	wantEqual(t, "text", c.askWith(t, "stream").text(), "answer to: "+q)
	wantEqual(t, "session of the results", c.session(), id)
	c.wantSeen(t, q, "sunny in Köln")
	next := c.question("thanks")
	c.history = append(c.history, user(next))
	wantEqual(t, "text", c.askWith(t, "create").text(), "answer to: "+next)
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
	messages := c.log(t, id)
	wantEqual(t, "messages", len(messages), 7) // a question, its calls, two results, an answer; a question, an answer
}

func clientToolBesideServerTool(t *testing.T, c *conversation) {
	c.model = "helper"
	c.inSession()
	q := c.question("use a tool and the weather")
	c.history = []any{user(q)}
	c.execute(t, c.askWith(t, "stream"), 1) // the server's call is invisible
	wantEqual(t, "text", c.askWith(t, "stream").text(), "answer to: "+q)
	c.wantSeen(t, q, "sunny in Bonn")
	c.wantSeen(t, q, "42")
}

func resultWithMessage(t *testing.T, c *conversation) {
	c.replaceStatelessRun(t)
	c.inSession()
	c.history = []any{user(c.question("the weather"))}
	c.execute(t, c.askWith(t, "create"), 1)
	next := c.question("and in French?")
	c.history = append(c.history, user(next))
	wantEqual(t, "text", c.askWith(t, "create").text(), "answer to: "+next)
	c.wantSeen(t, next, "sunny in Bonn")
	wantEqual(t, "messages", len(c.log(t, c.session())), 5) // a question, a call, its result; a question, an answer
	c.history = append(c.history, user(c.question("thanks")))
	c.askWith(t, "create")
	wantEqual(t, "history", c.front.header(c.mark, "X-Bobbin-History"), "append")
}

// replaceStatelessRun sends a result with a message without a session: another run answers, and the
// one that made the call ends, as nobody will give it the result.
func (c *conversation) replaceStatelessRun(t *testing.T) {
	t.Helper()
	c.history = []any{user(c.question("the weather of a stateless call"))}
	c.execute(t, c.askWith(t, "create"), 1)
	before := must.Get(apiclient.Call(t.Context(), c, ops.ListRuns, ops.SessionPage{InSession: ops.InSession{SessionID: c.session()}}))(t)
	wantEqual(t, "run before", string(before.Items[0].Status), "waiting")
	next := c.question("stateless, and in French?")
	c.history = append(c.history, user(next))
	wantEqual(t, "text", c.askWith(t, "create").text(), "answer to: "+next)
	c.wantSeen(t, next, "sunny in Bonn")
	process.Await(t, "the end of the run that made the call", func() bool {
		run := must.Get(apiclient.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: before.Items[0].ID}))(t)
		return run.Status == core.RunCanceled
	})
}

func clientToolLeftAlone(t *testing.T, c *conversation) {
	c.inSession()
	q := c.question("the weather")
	c.history = []any{user(q)}
	c.askWith(t, "create")
	// The client asks something else in place of the result: the history has no answer to the call.
	next := c.question("never mind")
	got := decode[completion](t, c.do(t, c.newChat("create", []any{user(q), assistant(""), user(next)}, nil)).result)
	wantEqual(t, "text", got.text(), "answer to: "+next)
	var said []core.Message
	for _, m := range c.log(t, c.session()) {
		if m.Role != core.RoleTool {
			said = append(said, m)
		}
	}
	wantEqual(t, "path", path(said), strings.Join([]string{"user: " + q, "user: " + next, "assistant: answer to: " + next}, "\n"))
}

func unknownResults(t *testing.T, c *conversation) {
	q := c.question("the weather")
	c.history = []any{user(q)}
	got := c.askWith(t, "create")
	c.execute(t, got, 1)
	tools := object{"tools": []any{weatherTool()}}

	stranger := c.newChat("create", []any{c.history[0], c.history[2]}, tools) // without the call
	stranger.Key = bobKey
	wantEqual(t, "status of another owner's call", c.fail(t, stranger).Status, http.StatusBadRequest)

	made := got.Choices[0].Message.ToolCalls[0]
	made.ID = "call_1234567890"
	result := object{"role": "tool", "tool_call_id": made.ID, "content": "snow"}
	c.front.count(c.mark)
	fault := c.fail(t, c.newChat("create", []any{user(q), result}, tools))
	compare.True(t, fault.Status == http.StatusBadRequest && strings.Contains(fault.Message, "call_1234567890"), "got %s, want 400 with the call's id", fault)
	wantEqual(t, "requests", c.front.count(c.mark), 1)
	// With its call it is that of another server: the conversation goes on here.
	other := []any{user(q), object{"role": "assistant", "content": nil, "tool_calls": []any{made}}, result}
	decode[completion](t, c.do(t, c.newChat("create", other, nil)).result)
	c.wantSeen(t, "Continue with these results.", "snow")

	wantEqual(t, "text", c.askWith(t, "create").text(), "answer to: "+q)
	c.history = c.history[:len(c.history)-1] // the client has lost the answer, and sends the results again
	wantEqual(t, "text of the same answer", c.askWith(t, "stream").text(), "answer to: "+q)
	c.history[len(c.history)-2].(object)["content"] = "rain" //nolint:forcetypeassert // a message
	c.history = c.history[:len(c.history)-1]
	c.askWith(t, "create")
	c.wantSeen(t, "Continue with these results.", "rain") // as those of another server
}

func toolChoice(t *testing.T, c *conversation) {
	q := c.question("hello")
	named := object{"type": "function", "function": object{"name": "get_weather"}}
	word := weatherTool()
	word["function"].(object)["name"] = "auto" //nolint:forcetypeassert // a function
	for _, choice := range []any{"none", "auto", "required", named, object{"type": "function", "function": object{"name": "auto"}}} {
		c.do(t, c.newChat("create", []any{user(q)}, object{"tools": []any{weatherTool(), word}, "tool_choice": choice}))
	}
	var got []string
	for _, r := range c.provider.Received() {
		if strings.Contains(string(r.Body), q) {
			var body struct {
				ToolChoice json.RawMessage `json:"tool_choice"`
			}
			must.Do(t, json.Unmarshal(r.Body, &body))
			got = append(got, string(body.ToolChoice))
		}
	}
	all := strings.Join(got, " ")
	if len(got) != 5 || !strings.Contains(all, `{"name":"auto"}`) || !strings.Contains(all, `"none"`) || !strings.Contains(all, `"required"`) || !strings.Contains(all, `"get_weather"`) {
		t.Errorf("the model got the choices %s", all)
	}
	bad := c.fail(t, c.newChat("create", []any{user(q)}, object{"tools": []any{weatherTool()}, "tool_choice": object{"type": "function", "function": object{"name": "other"}}}))
	wantEqual(t, "status of a choice that is no tool", bad.Status, http.StatusBadRequest)
}

// responseToolScenarios are about tools of the client in the Responses API.
func responseToolScenarios() []scenario {
	return []scenario{
		{name: "responses: client tool", run: responseClientTool},
		{name: "responses: client tools in a conversation", run: responseToolsInConversation},
		{name: "responses: result of a client tool with a message", run: responseResultWithMessage},
		{name: "responses: approval", run: responseApproval},
	}
}

// responseWeather is the client's tool as the Responses API has it.
func responseWeather() []any {
	tool := weatherTool()["function"].(object)
	return []any{object{"type": "function", "name": tool["name"], "description": tool["description"], "parameters": tool["parameters"], "strict": false}}
}

// outputs returns the results of the calls of a response.
func outputs(t *testing.T, r response, want int) []any {
	t.Helper()
	var list []any
	for _, i := range r.Output {
		if i.Type == "function_call" {
			call := toolCall{ID: i.CallID}
			call.Function.Arguments = i.Arguments
			list = append(list, object{"type": "function_call_output", "call_id": i.CallID, "output": weather(call)})
		}
	}
	must.True(t, len(list) == want, "got %d calls in %+v, want %d", len(list), r.Output, want)
	return list
}

func responseClientTool(t *testing.T, c *conversation) {
	tools := object{"tools": responseWeather()}
	for _, method := range []string{"create", "stream"} {
		q := c.question("the weather twice, " + method)
		r := decode[response](t, c.do(t, c.newResponse(method, q, tools)).result)
		for range 2 {
			results := outputs(t, r, 1)
			r = decode[response](t, c.do(t, c.newResponse(method, results, object{"tools": responseWeather(), "previous_response_id": r.ID})).result)
		}
		wantEqual(t, "text", strings.TrimSpace(r.text()), "answer to: "+q)
		again := decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, r.ID)).result)
		wantEqual(t, "text later", again.text(), r.text())
		next := c.question("thanks")
		wantEqual(t, "next text", c.respond(t, next, object{"previous_response_id": r.ID}).text(), "answer to: "+next)
	}
}

func responseResultWithMessage(t *testing.T, c *conversation) {
	for _, place := range []string{"previous_response_id", "conversation"} {
		first := c.respond(t, c.question("the weather, "+place), object{"tools": responseWeather()})
		next := c.question("and in French, " + place + "?")
		input := append(outputs(t, first, 1), user(next))
		in := object{place: first.ID}
		if place == "conversation" {
			in[place] = first.Conversation.ID
		}
		wantEqual(t, "text", c.respond(t, input, in).text(), "answer to: "+next)
		c.wantSeen(t, next, "sunny in Bonn")
		in = object{"conversation": first.Conversation.ID}
		for i, result := range []string{"sunny in Bonn", "rain"} { // again: the same ones are there, others stand beside them
			input[0].(object)["output"] = result
			wantEqual(t, "text after results again", c.respond(t, input, in).text(), "answer to: "+next)
			c.wantSeen(t, next, result)
			wantEqual(t, "messages of all branches", len(c.log(t, c.session())), 7+3*i)
		}
	}
}

func responseToolsInConversation(t *testing.T, c *conversation) {
	made := decode[struct{ ID string }](t, c.do(t, c.newCall("conversations.create", object{})).result)
	q := c.question("the weather of both")
	first := decode[response](t, c.do(t, c.newResponse("stream", q, object{"tools": responseWeather(), "conversation": made.ID})).result)
	wantEqual(t, "status", first.Status, "completed")
	wantEqual(t, "items of a response with two calls alone", len(first.Output), 2)
	r := decode[response](t, c.do(t, c.newResponse("stream", outputs(t, first, 2), object{"tools": responseWeather(), "conversation": made.ID})).result)
	wantEqual(t, "text", strings.TrimSpace(r.text()), "answer to: "+q)
	list := c.newCall("conversations.items.list", object{"order": "asc"}, made.ID)
	list.All = true
	var types []string
	for _, i := range decode[[]item](t, c.do(t, list).result) {
		types = append(types, i.Type)
	}
	wantEqual(t, "items", strings.Join(types, " "), "message function_call function_call function_call_output function_call_output message")
}

func responseApproval(t *testing.T, c *conversation) {
	c.model = "careful"
	q := c.question("use a tool")
	begun := c.respond(t, q, object{"background": true})
	var run core.Run
	id := c.session()
	process.Await(t, "the question of the run", func() bool {
		run = c.latestRun(t, id)
		return len(run.Approvals) > 0
	})
	waiting := decode[response](t, c.do(t, c.newCall("responses.retrieve", nil, begun.ID)).result)
	wantEqual(t, "status while a person decides", waiting.Status, "in_progress")
	answers := c.cl.begin(t, c.newCall("responses.retrieve", object{"stream": true}, begun.ID))
	must.Get(apiclient.Call(t.Context(), c, ops.DecideApproval, ops.Decision{InRun: ops.InRun{RunID: run.ID}, ApprovalID: run.Approvals[0].ID, Decision: "approve"}))(t)
	text, last := readEvents(t, await(t, answers).events, -1)
	wantEqual(t, "last event", last.Type, "response.completed")
	wantEqual(t, "text", strings.TrimSpace(text), "answer to: "+q)
}
