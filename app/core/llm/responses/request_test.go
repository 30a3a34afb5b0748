package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestParameters(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)
	full := llm.Request{
		MaxOutputTokens: 5, Temperature: new(0.5), ReasoningEffort: "low", Stop: []string{"x"}, Seed: new(1),
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: schema, Strict: new(true)},
	}
	for name, c := range map[string]struct {
		model string
		req   llm.Request
		want  string
	}{
		"none":              {"gpt-6", llm.Request{}, `{"include":["reasoning.encrypted_content"],"model":"gpt-6","reasoning":{"summary":"auto"},"store":false,"stream":true}`},
		"in the background": {"gpt-6", llm.Request{Background: true}, `{"include":["reasoning.encrypted_content"],"model":"gpt-6","store":false,"stream":true}`},
		"another's model":   {"qwen3-32b", llm.Request{}, `{"include":["reasoning.encrypted_content"],"model":"qwen3-32b","store":false,"stream":true}`},
		"without thought":   {"gpt-4o", llm.Request{TopP: new(0.1)}, `{"model":"gpt-4o","store":false,"stream":true,"top_p":0.1}`},
		"all": {"o4-mini", full, `{"include":["reasoning.encrypted_content"],"max_output_tokens":16,"model":"o4-mini","reasoning":{"effort":"low","summary":"auto"},"store":false,"stream":true,` +
			`"text":{"format":{"name":"answer","schema":{"properties":{"a":{},"b":{}},"type":"object"},"strict":true,"type":"json_schema"}}}`},
		"JSON": {"gpt-4o", llm.Request{ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject}, Temperature: new(0.0)},
			`{"model":"gpt-4o","store":false,"stream":true,"temperature":0,"text":{"format":{"type":"json_object"}}}`},
		"choices need tools": {"gpt-4o", llm.Request{ToolChoice: core.ToolChoiceRequired, ParallelToolCalls: new(false)}, `{"model":"gpt-4o","store":false,"stream":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.req.Messages = ask("hi").Messages
			got := sent(t, responses.Options{Model: c.model}, c.req)
			compare.True(t, name != "all" || strings.Contains(string(got.Body), string(schema)), "got %s, want the schema's keys in their order", got.Body)
			body := got.JSON()
			delete(body, "input")
			compare.Equal(t, "", c.want, toJSON(t, body))
		})
	}
}

func TestLackedParameters(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][]llm.Parameter{
		"gpt-4o":  {llm.ReasoningEffort, llm.Stop, llm.Seed},
		"gpt-5.4": {llm.Temperature, llm.TopP, llm.Stop, llm.Seed},
		"local":   {llm.Stop, llm.Seed},
	} {
		compare.Equal(t, model, want, must.Get(responses.New(responses.Options{Model: model}))(t).Info().Lacks)
	}
}

// Images and PDFs go with the user's message as data.
func TestMedia(t *testing.T) {
	t.Parallel()
	req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "Look.", Media: []llm.Media{
		{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("image")},
		{Part: core.Part{Type: core.PartFile, Name: "a.pdf"}, Data: []byte("pages")},
	}}}}
	want := `[{"content":[{"text":"Look.","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,aW1hZ2U=","type":"input_image"},` +
		`{"file_data":"data:application/pdf;base64,cGFnZXM=","filename":"a.pdf","type":"input_file"}],"role":"user"}]`
	compare.Equal(t, `toJSON(t, sent(t, responses.Options{}, req).JSON()["input"])`, want, toJSON(t, sent(t, responses.Options{}, req).JSON()["input"]))
}

// Ids that are too long are replaced, the same in a call and its result.
func TestLongCallIDs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	got := sent(t, responses.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: long, Name: "f"}, {ID: long[1:], Name: "f"}}},
		{Role: core.RoleTool, ToolCallID: long, Content: "1"}, {Role: core.RoleTool, ToolCallID: long[1:], Content: "2"},
	}})
	raw := string(got.Body)
	id := llm.HashID(long, 40)
	compare.True(t, strings.Count(raw, id) == 2 && strings.Count(raw, `"`+long[1:]+`"`) == 2 && !strings.Contains(raw, long), "got %s", raw)
}

func TestUnknownRole(t *testing.T) {
	t.Parallel()
	s := serve(t, fine)
	_, err := collect(t, open(t, s, responses.Options{}), llm.Request{Messages: []llm.Message{{Role: "robot"}}})
	compare.Equal(t, "refused, requests", []any{true, 0}, []any{llm.IsKind(err, llm.KindInvalid), len(s.Received())})
}

func TestInfo(t *testing.T) {
	t.Parallel()
	options := responses.Options{Provider: "openai", Model: "m", APIKey: key, BaseURL: "http://u:" + key + "@provider.test/v1/"}
	m := must.Get(responses.New(options))(t)
	got := m.Info()
	compare.Equal(t, "info", []any{"m", "openai"}, []any{got.Name, got.Provider})
	compare.Equal(t, "options printed", "{openai model m at http://provider.test/v1/}", fmt.Sprintf("%+v", options))
}

// A system message among the others goes to models that bind thoughts, as a developer's.
func TestSystemMessages(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gpt-6.2": `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"},{"content":"Be brief.","role":"developer"}]`,
		"gpt-6":   `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"}]`,
	} {
		req := ask("hi")
		req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: "Be brief."})
		compare.Equal(t, model, want, toJSON(t, sent(t, responses.Options{Model: model}, req).JSON()["input"]))
	}
}

// key stands for an API key. No error and no log may hold it.
const key = "the-key-of-the-tests"

// serve answers the requests in order; the last answer is repeated.
func serve(t *testing.T, answers ...http.HandlerFunc) *llmtest.Server {
	t.Helper()
	return llmtest.Serve(t, answers...)
}

// stream answers with the events.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		llmtest.SendEvents(w, events...)
	}
}

// refuse answers with a status and a body.
func refuse(status int, body string) http.HandlerFunc {
	return llmtest.Reply(status, body)
}

// done is the event of a complete item.
func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

const completed = `{"type":"response.completed","response":{"object":"response","status":"completed","model":"gpt-6-2026-09-01","output":[]}}`

var fine = stream(`{"type":"response.output_text.delta","output_index":0,"delta":"ok"}`, completed)

func open(t *testing.T, s *llmtest.Server, options responses.Options) *responses.Model {
	t.Helper()
	if options.Model == "" {
		options.Model = "gpt-6"
	}
	options.BaseURL = s.URL + "/v1"
	return must.Get(responses.New(options))(t)
}

var (
	ask     = llmtest.Ask
	collect = llmtest.Collect
)

// sent returns what a model sends for the request.
func sent(t *testing.T, options responses.Options, req llm.Request) llmtest.Received {
	t.Helper()
	s := serve(t, fine)
	if res, err := collect(t, open(t, s, options), req); err != nil || res.Text != "ok" {
		t.Fatalf("got %q, %v", res.Text, err)
	}
	return s.Last()
}

// toJSON returns the value as JSON.
func toJSON(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	must.Do(t, encoder.Encode(v))
	return strings.TrimSpace(b.String())
}

func TestErrors(t *testing.T) {
	t.Parallel()
	failed := func(fault string) http.HandlerFunc {
		return stream(`{"type":"response.failed","response":{"object":"response","status":"failed","output":[],"instructions":"what is the limit of tokens?","error":` + fault + `}}`)
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		kind   llm.ErrorKind
		code   string
	}{
		"too long": {refuse(400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`),
			llm.KindContextLength, "context_length_exceeded"},
		"too long, in the stream": {failed(`{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}`),
			llm.KindContextLength, "context_length_exceeded"},
		"rate, in the stream":  {failed(`{"code":"rate_limit_exceeded","message":"Rate limit reached for gpt-6"}`), llm.KindRateLimit, "rate_limit_exceeded"},
		"busy, in the stream":  {failed(`{"code":"server_error","message":"The server had an error"}`), llm.KindOverloaded, "server_error"},
		"quota, in the stream": {stream(`{"type":"error","code":"insufficient_quota","message":"You exceeded your current quota","param":null}`), llm.KindAuth, "insufficient_quota"},
		"error within an error": {stream(`{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}`),
			llm.KindContextLength, "context_length_exceeded"},
		"invalid prompt": {failed(`{"code":"invalid_prompt","message":"The prompt is not valid."}`), llm.KindInvalid, "invalid_prompt"},
		"flagged prompt": {refuse(400, `{"error":{"message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy.","code":"invalid_prompt"}}`), llm.KindContentFilter, "invalid_prompt"},
		"flagged, in the stream": {failed(`{"code":"invalid_prompt","message":"Invalid prompt: your prompt was flagged as potentially violating our usage policy."}`),
			llm.KindContentFilter, "invalid_prompt"},
		"policy":          {failed(`{"code":"bio_policy","message":"no"}`), llm.KindContentFilter, "bio_policy"},
		"an image":        {failed(`{"code":"invalid_image","message":"The image cannot be read."}`), llm.KindInvalid, "invalid_image"},
		"key":             {refuse(401, `{"error":{"message":"Incorrect API key provided: `+key+`","code":"invalid_api_key"}}`), llm.KindAuth, "invalid_api_key"},
		"key in a stream": {stream(`{"error":{"message":"` + key + `","code":"` + key + `"}}`), llm.KindUnknown, "***"},
		"no reason":       {failed(`null`), llm.KindOverloaded, "server_error"},
		"other JSON":      {refuse(200, `{"error":{"message":"no such model","code":"model_not_found"}}`), llm.KindNotFound, "model_not_found"},
		"no status":       {refuse(200, `{"object":"response","output":[]}`), llm.KindTruncated, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.answer)
			_, err := collect(t, open(t, s, responses.Options{APIKey: key}), ask("hi"))
			e := llm.AsError(err)
			must.True(t, e != nil && e.Kind == c.kind && e.Code == c.code, "got %+v, want %s with code %q", e, c.kind, c.code)
			compare.True(t, !strings.Contains(fmt.Sprintf("%v %+v", err, *e), key), "got %+v, want it without the key", e)
			compare.Equal(t, "authorization: want the key", "Bearer "+key, s.Received()[0].Header.Get("Authorization"))
		})
	}
}

// What servers do differently is understood.
func TestAnswers(t *testing.T) {
	t.Parallel()
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"}`
	}
	for name, c := range map[string]struct {
		events []string
		want   llm.Response
	}{
		"items only when they are done": {[]string{done(0, said2), done(1, call("a")), completed},
			llm.Response{Text: "Done.", ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}}, Finish: core.FinishToolCalls}},
		"items only at the end": {[]string{`{"type":"response.completed","response":{"status":"completed","output":[` + said2 + `]}}`},
			llm.Response{Text: "Done.", Finish: core.FinishStop}},
		"items once, though repeated": {[]string{`{"type":"response.output_text.delta","output_index":0,"delta":"Done."}`, done(0, said2),
			`{"type":"response.completed","response":{"status":"completed","output":[` + said2 + `]}}`}, llm.Response{Text: "Done.", Finish: core.FinishStop}},
		"ids of calls that are missing or repeated": {[]string{done(0, call("a")), done(1, call("a")), done(2, call("")), completed},
			llm.Response{ToolCalls: []core.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {Name: "f", Arguments: "{}"}, {Name: "f", Arguments: "{}"}}, Finish: core.FinishToolCalls}},
		"an end without a status": {[]string{done(0, said2), `{"type":"response.completed","response":{}}`}, llm.Response{Text: "Done.", Finish: core.FinishStop}},
		"a refusal":               {[]string{`{"type":"response.refusal.delta","output_index":0,"delta":"No."}`, completed}, llm.Response{Text: "No.", Finish: core.FinishStop}},
		"an incomplete answer without a reason": {[]string{`{"type":"response.incomplete","response":{"status":"incomplete","output":[` + said2 + `]}}`},
			llm.Response{Text: "Done.", Finish: core.FinishLength}},
		"unknown events and items": {[]string{`{"type":"response.new"}`, done(0, `{"type":"compaction","encrypted_content":"x"}`), done(1, said2), completed},
			llm.Response{Text: "Done.", Finish: core.FinishStop}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := must.Get(collect(t, open(t, serve(t, stream(c.events...)), responses.Options{}), ask("hi")))(t)
			for i := range res.ToolCalls {
				if res.ToolCalls[i].ID != "a" || i > 0 {
					compare.True(t, strings.HasPrefix(res.ToolCalls[i].ID, "call_"), "call %d has the id %q, want one of ours", i, res.ToolCalls[i].ID)
					res.ToolCalls[i].ID = ""
				}
			}
			compare.Equal(t, "", c.want, res)
		})
	}
}

// FuzzStream: see llmtest.
func FuzzStream(f *testing.F) {
	const added, arguments = `{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","call_id":%q,"name":"f"}}`,
		`{"type":"response.function_call_arguments.delta","output_index":%d,"delta":%q}`
	for _, events := range [][]string{
		{`{"type":"response.created","response":{"status":"in_progress","output":[]}}`, `{"type":"response.output_text.delta","output_index":0,"delta":"Hel"}`, done(0, said1), completed},
		{fmt.Sprintf(added, 0, "a"), fmt.Sprintf(added, 1, "a"), fmt.Sprintf(arguments, 1, "{"), fmt.Sprintf(arguments, 0, "{}"), fmt.Sprintf(arguments, 7, "x"), completed},
		{done(0, thought1), done(1, thought2), done(2, call1), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}`},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}}`},
		{`{"type":"error","code":"server_error","message":"m"}`, `{"error":7}`},
	} {
		f.Add([]byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n"))
		f.Add([]byte(events[0]))
	}
	f.Add([]byte(`{"object":"response","status":"completed","output":[` + thought2 + `,` + said1 + `,` + call1 + `,3],"usage":7}`))
	f.Add([]byte("event: error\r\ndata: {\r\ndata: }\r\n\r\n: x\n"))
	llmtest.FuzzStream(f, func(transport http.RoundTripper) (llm.Model, error) {
		return responses.New(responses.Options{Model: "m", Transport: transport})
	})
}

const (
	thought1 = `{"id":"rs_1","summary":[],"encrypted_content":"blob-1","type":"reasoning"}`
	said1    = `{"content":[{"annotations":[],"text":"Grüße. ","type":"output_text"}],"role":"assistant","type":"message"}`
	thought2 = `{"id":"rs_2","summary":[{"text":"one","type":"summary_text"},{"text":"two","type":"summary_text"}],"encrypted_content":"blob-2","type":"reasoning"}`
	call1    = `{"arguments":"{\"x\": 1.0}","call_id":"a","name":"f","type":"function_call"}`
	thought3 = `{"id":"rs_3","summary":[],"encrypted_content":"blob-3","type":"reasoning"}`
	call2    = `{"arguments":"{}","call_id":"b","name":"g","type":"function_call"}`
	said2    = `{"content":[{"annotations":[],"text":"Done.","type":"output_text"}],"role":"assistant","type":"message"}`
)

// Messages with a phase.
const (
	comment = `{"content":[{"annotations":[],"text":"I look. ","type":"output_text"}],"phase":"commentary","role":"assistant","type":"message"}`
	final   = `{"content":[{"annotations":[],"text":"Done.","type":"output_text"}],"phase":"final_answer","role":"assistant","type":"message"}`
)

// asMessage returns the answer as the message that it becomes.
func asMessage(res llm.Response) llm.Message {
	return llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls}
}

// Items of reasoning and the phases of messages go back as they came, in their places.
func TestReasoningGoesBackInItsPlace(t *testing.T) {
	t.Parallel()
	for name, items := range map[string][]string{
		"before a text":              {thought1, said1},
		"before a call":              {thought2, call1},
		"between texts and calls":    {thought1, said1, thought2, call1, thought3, call2},
		"between texts":              {said1, thought1, said2},
		"two beside each other":      {thought1, thought2, said1},
		"after the calls":            {call1, call2, thought3, said1},
		"with nothing but a summary": {thought2, said2},
		"a phase":                    {final},
		"two phases":                 {comment, final},
		"a phase and a call":         {comment, call1},
		"a call and a phase":         {call1, final},
		"phases and reasoning":       {thought1, comment, thought2, call1, thought3, final},
		"a phase, then none":         {comment, said2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []string
			for i, item := range items {
				events = append(events, done(i, item))
			}
			s := serve(t, stream(append(events, completed)...), fine)
			m := open(t, s, responses.Options{})
			res := must.Get(collect(t, m, ask("hi")))(t)
			req := ask("hi")
			req.Messages = append(req.Messages, asMessage(res))
			must.Get(collect(t, m, req))(t)
			got := string(s.Received()[1].Body)
			compare.True(t, strings.Contains(got, `"role":"user"},`+strings.Join(items, ",")+"]"), "got %s\nwant the items %s", got, strings.Join(items, ","))
		})
	}
}

// Summaries are shown as they arrive, and kept text by text.
func TestReasoningIsShown(t *testing.T) {
	t.Parallel()
	const part, delta = `{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":%d}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":%q}`
	s := serve(t, stream(fmt.Sprintf(part, 0), fmt.Sprintf(delta, "on"), fmt.Sprintf(delta, "e"), fmt.Sprintf(part, 1), fmt.Sprintf(delta, "two"),
		done(0, thought2), completed))
	res := must.Get(collect(t, open(t, s, responses.Options{}), ask("hi")))(t)
	compare.Equal(t, "reasoning", "one\n\ntwo", res.Reasoning)
	want := []core.Part{
		{Type: "reasoning", Name: "rs_2", Text: "one", Origin: "openai/gpt-6"},
		{Type: "reasoning", Name: "rs_2", Text: "two", Origin: "openai/gpt-6", Signature: "blob-2"},
	}
	compare.Equal(t, "parts", want, res.Parts)
}

// Reasoning that cannot go back is only shown.
func TestReasoningThatStays(t *testing.T) {
	t.Parallel()
	for name, item := range map[string]string{
		"not encrypted": `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`,
		"cut off":       `{"id":"rs_1","type":"reasoning","status":"incomplete","encrypted_content":"half","summary":[{"type":"summary_text","text":"hm"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(done(0, item), done(1, said1), completed), fine)
			m := open(t, s, responses.Options{})
			res := must.Get(collect(t, m, ask("hi")))(t)
			compare.True(t, res.Reasoning == "hm" && len(res.Parts) == 1 && res.Parts[0].Text == "hm", "got %+v", res)
			if _, err := collect(t, m, llm.Request{Messages: []llm.Message{asMessage(res)}}); err != nil || strings.Contains(string(s.Received()[1].Body), "rs_1") {
				t.Errorf("got %v, %s, want no reasoning", err, string(s.Received()[1].Body))
			}
		})
	}
}

// Tools that a system message adds are an item before its text; models that bind no reasoning get neither.
func TestAddedTools(t *testing.T) {
	t.Parallel()
	scales := llm.ToolSpec{Name: "scales", Parameters: json.RawMessage(`{"type":"object"}`)}
	const question = `{"content":[{"text":"hi","type":"input_text"}],"role":"user"}`
	const item = `{"role":"developer","tools":[{"name":"scales","parameters":{"type":"object"},"strict":false,"type":"function"}],"type":"additional_tools"}`
	for name, c := range map[string]struct {
		model, content, want string
	}{
		"alone":       {"gpt-6.2", "", `[` + question + `,` + item + `]`},
		"with a text": {"gpt-6.2", "Be brief.", `[` + question + `,` + item + `,{"content":"Be brief.","role":"developer"}]`},
		"free":        {"gpt-6", "Be brief.", `[` + question + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: c.content, AddedTools: []llm.ToolSpec{scales}})
			compare.Equal(t, "got", c.want, toJSON(t, sent(t, responses.Options{Model: c.model}, req).JSON()["input"]))
			compare.Equal(t, c.model+" adds tools", c.model == "gpt-6.2", (must.Get(responses.New(responses.Options{Model: c.model}))(t).Info().ToolChanges == llm.ToolsAdded))
		})
	}
}
