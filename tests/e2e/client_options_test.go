package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// toolUser is a client of a dialect that executes tools.
type toolUser struct {
	t       *testing.T
	h       *apptest.Bobbin
	path    string
	headers []string
	said    []string // items, or messages
	last    foreignAnswer
	calls   []string // names of the calls of the last answer
}

// send sends the items and the options, with tools of these names, and reads the calls of the answer.
func (u *toolUser) send(options string, tools []string, items ...string) foreignAnswer {
	u.t.Helper()
	u.said = append(u.said, items...)
	field, before := "messages", ""
	if u.path == "responses" {
		field = "input"
		if u.last.ID != "" {
			before, u.said = fmt.Sprintf(`"previous_response_id":%q,`, u.last.ID), items
		}
	}
	var defined []string
	for _, name := range tools {
		function := fmt.Sprintf(`"name":%q,"parameters":{"type":"object","properties":{}}`, name)
		if u.path != "responses" {
			function = `"function":{` + function + `}`
		}
		defined = append(defined, `{"type":"function",`+function+`}`)
	}
	if len(tools) > 0 {
		options = strings.TrimSuffix(`"tools":[`+strings.Join(defined, ",")+`],`+options, ",")
	}
	if options != "" {
		options = "," + options
	}
	a := postForeign(u.t, u.h, u.path, fmt.Sprintf(`{"model":"plain",%s"%s":[%s]%s}`, before, field, strings.Join(u.said, ","), options), u.headers...)
	if a.status == http.StatusOK {
		u.last = a
	}
	return a
}

// results returns the results of the calls of the last answer, and keeps their names.
func (u *toolUser) results() (items []string) {
	u.t.Helper()
	u.calls = nil
	var a struct {
		Choices []struct{ Message json.RawMessage }
		Output  []struct {
			Type, Name string
			CallID     string `json:"call_id"`
		}
	}
	must.Do(u.t, json.Unmarshal([]byte(u.last.text), &a))
	for _, it := range a.Output {
		if it.Type == "function_call" {
			u.calls = append(u.calls, it.Name)
			items = append(items, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"sunny"}`, it.CallID))
		}
	}
	for _, c := range a.Choices {
		var m struct {
			ToolCalls []struct {
				ID       string
				Function struct{ Name string }
			} `json:"tool_calls"`
		}
		must.Do(u.t, json.Unmarshal(c.Message, &m))
		u.said = append(u.said, string(c.Message))
		for _, call := range m.ToolCalls {
			u.calls = append(u.calls, call.Function.Name)
			items = append(items, fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"sunny"}`, call.ID))
		}
	}
	return items
}

// received is what of a request a provider acts upon.
func received(t *testing.T, r provider.Received) string {
	t.Helper()
	var body struct {
		Tools          []struct{ Function struct{ Name string } }
		ToolChoice     json.RawMessage `json:"tool_choice"`
		ResponseFormat json.RawMessage `json:"response_format"`
		Temperature    json.RawMessage
		MaxTokens      int `json:"max_tokens"`
		Stop           json.RawMessage
	}
	must.Do(t, json.Unmarshal(r.Body, &body))
	out := strings.Join(r.System, " ")
	for _, tool := range body.Tools {
		out += " " + tool.Function.Name
	}
	return fmt.Sprintf("%s | %s | %s | %s | %d | %s", out, body.ToolChoice, body.ResponseFormat, body.Temperature, body.MaxTokens, body.Stop)
}

// A request that brings results of client tools says all of what it wants, as one with a message does: its
// options hold from there on, and none of those before.
func TestOptionsOfRequestsWithResults(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: func(r provider.Received) []provider.Call {
		last := r.Messages[len(r.Messages)-1]
		if r.ToolChoice != "required" && last.Role != "user" {
			return nil
		}
		name := r.Tools[0].Name
		if last.Role != "user" {
			name = r.Tools[len(r.Tools)-1].Name
		}
		return []provider.Call{{ID: fmt.Sprintf("c%d", len(r.Messages)), Name: name, Arguments: "{}"}}
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithModel("other", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\nsystem_prompt: You answer.\n"))
	const first = `"tool_choice":"required","temperature":0.1,"stop":["x"]`
	both := []string{"lookup", "final"}
	for what, c := range map[string]struct {
		chat, responses string // options of the second request
		tools           []string
		want            string // what the provider receives
	}{
		"nothing":        {"", "", nil, "You answer. |  |  |  | 1024 | "},
		"the same tool":  {"", "", []string{"lookup"}, "You answer. lookup |  |  |  | 1024 | "},
		"other tools":    {`"tool_choice":"none"`, `"tool_choice":"none"`, []string{"final"}, `You answer. final | "none" |  |  | 1024 | `},
		"required again": {`"tool_choice":"required"`, `"tool_choice":"required"`, both, `You answer. lookup final | "required" |  |  | 1024 | `},
		"a named tool": {`"tool_choice":{"type":"function","function":{"name":"final"}}`, `"tool_choice":{"type":"function","name":"final"}`, both,
			`You answer. lookup final | {"type":"function","function":{"name":"final"}} |  |  | 1024 | `},
		"a format":    {`"response_format":{"type":"json_object"}`, `"text":{"format":{"type":"json_object"}}`, both, `You answer. lookup final |  | {"type":"json_object"} |  | 1024 | `},
		"a parameter": {`"temperature":0.5,"max_tokens":50`, `"temperature":0.5,"max_output_tokens":50`, both, `You answer. lookup final |  |  | 0.5 | 50 | `},
	} {
		for _, path := range []string{"chat/completions", "chat/completions in a session", "responses"} {
			u := toolUser{t: t, h: h}
			options := c.chat
			path, inSession := strings.CutSuffix(path, " in a session")
			if u.path = path; path == "responses" {
				options = c.responses
			}
			if inSession {
				u.headers = []string{"X-Session-Id", what}
			}
			begun := u.send(first, both, `{"role":"user","content":"`+what+`"}`)
			results := u.results()
			compare.Equal(t, what+": calls of the first answer", []string{"lookup"}, u.calls)
			answer := u.send(options, c.tools, results...)
			all := p.Received()
			if got := received(t, all[len(all)-1]); got != c.want || !strings.Contains(string(all[len(all)-1].Body), "sunny") || answer.status != http.StatusOK {
				t.Errorf("%s, %s: the provider received %s, want %s: %d %s", path, what, got, c.want, answer.status, answer.text)
			}
			again := u.results()
			if strings.Contains(c.chat, "required") {
				compare.Equal(t, "calls of the second answer", []string{"final"}, u.calls)
				if last := u.send("", both, again...); last.status != http.StatusOK || strings.Contains(last.text, "function_call\"") {
					t.Errorf("%s: got %d %s, want a text", path, last.status, last.text)
				}
			} else {
				compare.Equal(t, what+": calls of the second answer", []string(nil), u.calls)
			}
			if path == "responses" {
				for _, a := range []foreignAnswer{begun, answer} {
					compare.Equal(t, what+": the response "+a.ID, said(t, a), said(t, postForeign(t, h, "responses/"+a.ID, "")))
				}
			}
		}
	}
}

// said returns what a response says, but for what one that goes on does not keep.
func said(t *testing.T, a foreignAnswer) (response map[string]any) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(a.text), &response))
	delete(response, "previous_response_id")
	return response
}

// Results of some of the open calls change nothing. A client gets its calls as soon as no person has to decide any more.
func TestResultsOfSomeCalls(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\ntools: [calculator]\ntool_settings:\n  calculator: {approval: always}\n"))
	u := toolUser{t: t, h: h, path: "responses"}
	run := must.Get(apptest.SendAndWait(t.Context(), h, core.SendMessage{
		SessionID: apptest.NewSession(t, h.Client, ops.NewSession{Agent: "plain"}), Options: &core.RunOptions{Tools: []core.ClientTool{lookup, {Name: "final"}}},
		Content: "call calculator {\"expression\":\"6*7\"}\ncall lookup {}\ncall final {}",
	}))(t).Run
	id := strings.ReplaceAll(string(run.ID), "-", "")
	for _, open := range []int{3, 2} { // a person has to decide about the first
		before := said(t, postForeign(t, h, "responses/resp_"+id, ""))
		for range 2 {
			a := u.send(`"temperature":0.9`, []string{"other"}, fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%s_call_1","output":"sunny"}`, id))
			if u.said = nil; a.status != http.StatusBadRequest || !strings.Contains(a.Error.Message, "send the results of all calls") {
				t.Errorf("%d calls are open: got %d %s", open, a.status, a.text)
			}
		}
		compare.Equal(t, "the response after refused results", before, said(t, postForeign(t, h, "responses/resp_"+id, "")))
		if run = must.Get(client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: run.ID}))(t); open == 3 {
			run.Approvals = run.Approvals[:1]
			decide(t, h, run, ops.Decision{Decision: "approve"})
		}
	}
	u.last = postForeign(t, h, "responses/resp_"+id, "")
	u.results()
	compare.Equal(t, "calls of the client, and open ones", "[lookup final] 2", fmt.Sprint(u.calls, len(run.Approvals)))
}

// Results that come by the native API bring no options: those of the message hold for the whole run.
func TestOptionsOfRunsWithNativeResults(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\nsystem_prompt: You answer.\n"))
	options := core.RunOptions{ToolChoice: core.ToolChoiceRequired, Tools: []core.ClientTool{lookup}, ModelParameters: core.ModelParameters{MaxOutputTokens: 50}}
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "plain"})
	asked := must.Get(apptest.SendAndWait(t.Context(), h, core.SendMessage{SessionID: id, Content: "call lookup {}", Options: &options}))(t)
	decide(t, h, must.Get(client.Call(t.Context(), h, ops.GetRun, ops.InRun{RunID: asked.Run.ID}))(t), ops.Decision{Result: new("in London")})
	ended(t, h, asked.Run.ID)
	var got []string
	for _, r := range p.Received() {
		got = append(got, received(t, r))
	}
	compare.Equal(t, "received", []string{`You answer. lookup | "required" |  |  | 50 | `, "You answer. lookup |  |  |  | 50 | "}, got)
	options.Since = "c"
	_, err := apptest.SendAsync(t.Context(), h, core.SendMessage{SessionID: id, Content: "hello", Options: &options})
	wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, `options has the unknown field "since"`)
}

// Options beside results are checked before the results count, and a run keeps its model.
func TestCheckedOptionsOfRequestsWithResults(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true, Calls: provider.CallNamed})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 16_000, 1_024, p), apptest.WithModel("other", 16_000, 1_024, p), apptest.WithAgent("plain", "name: plain\nmodel: house\n"))
	for _, path := range []string{"chat/completions", "responses"} {
		u := toolUser{t: t, h: h, path: path}
		u.send("", []string{"lookup"}, `{"role":"user","content":"call lookup {}"}`)
		results := u.results()
		said := slices.Clone(u.said)
		for options, says := range map[string]string{
			`"tool_choice":"nosuch"`: `"nosuch" is not a tool of this run`,
			`"temperature":7`:        "temperature is 7; use 0 to 2",
		} {
			u.said = slices.Clone(said)
			if a := u.send(options, []string{"lookup"}, results...); a.status != http.StatusBadRequest || !strings.Contains(a.Error.Message, says) {
				t.Errorf("%s, %s: got %d %s, want %q", path, options, a.status, a.text, says)
			}
		}
		for model, ignored := range map[string]string{"plain/house": "", "plain/other": "model"} {
			u.said = slices.Clone(said)
			a := u.send(`"model":"`+model+`"`, []string{"lookup"}, results...)
			if a.status != http.StatusOK || a.header.Get("X-Bobbin-Ignored") != ignored {
				t.Errorf("%s: got %d %s, ignored %q, want an answer of the run's model", path, a.status, a.text, a.header.Get("X-Bobbin-Ignored"))
			}
		}
	}
}
