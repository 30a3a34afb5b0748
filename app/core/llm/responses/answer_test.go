package responses_test

import (
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
