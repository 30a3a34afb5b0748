package openai_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// The numbers in the names of the tests are those of doc.go.

func TestO3ErrorEventInMidStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event string
		want  llm.ErrorKind
	}{
		"OpenAI":     {`{"error":{"message":"The server had an error","type":"server_error","code":null}}`, llm.KindOverloaded},
		"OpenRouter": {`{"error":{"code":429,"message":"slow down"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}`, llm.KindRateLimit},
		"in a choice": {
			`{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}`, llm.KindOverloaded,
		},
		"vLLM":   {`{"object":"error","message":"bad","type":"BadRequestError","code":400}`, llm.KindInvalid},
		"Gemini": {`[{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}]`, llm.KindOverloaded},
		"text":   {`{"error":"something broke"}`, llm.KindUnknown},
		"type":   {`{"error":{"message":"too slow","type":"timeout"}}`, llm.KindTimeout},
		"model":  {`{"error":{"message":"gone","type":"not_found_error"}}`, llm.KindNotFound},
		"google": {`{"error":{"message":"late","status":"DEADLINE_EXCEEDED"}}`, llm.KindTimeout},
		"wrong":  {`{"error":{"message":"bad","type":"invalid_request_error"}}`, llm.KindInvalid},
		"finish": {`{"choices":[{"delta":{},"finish_reason":"error"}]}`, llm.KindOverloaded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(text("par"), c.event, finishStop, done))
			got, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			compare.True(t, llm.IsKind(err, c.want) && got.Text == "par", "got %q, %v, want the partial text and %s", got.Text, err, c.want)
		})
	}
}

func TestO3ErrorEventByName(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string]string{
		"event line": "event: error\ndata: {\"message\":\"no more memory\",\"type\":\"server_error\"}\n\n",
		"llama.cpp":  "error: {\"code\":500,\"message\":\"no more memory\",\"type\":\"server_error\"}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				say(w, text("par"))
				_, _ = w.Write([]byte(lines))
			})
			_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			compare.True(t, llm.IsKind(err, llm.KindOverloaded) && strings.Contains(err.Error(), "no more memory"), "got %v, want KindOverloaded with the provider's words", err)
		})
	}
}

func TestO9FinishReasonIsKept(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(text("cut o"),
		`{"choices":[{"delta":{},"finish_reason":"length"}]}`,
		`{"choices":[{"delta":{},"finish_reason":null}]}`,
		`{"choices":[{"delta":{},"finish_reason":""}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, done))
	got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
	compare.True(t, got.Finish == core.FinishLength && got.Usage != nil && got.Usage.InputTokens == 3, "got %q, %+v, want length and the usage", got.Finish, got.Usage)
}

func TestO10AnswersAreBounded(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		write string
		times int
		want  string
	}{
		"a line":     {line, 9, "a line of the answer is larger than 8 MiB"},
		"an answer":  {": " + line + "\n", 70, "the answer is larger than 64 MiB"},
		"no stream":  {"{" + line, 70, "the answer is larger than 64 MiB"},
		"only blank": {strings.Repeat(" ", 1<<20), 9, "the blank beginning of the answer is larger than 8 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for range c.times {
					if _, err := w.Write([]byte(c.write)); err != nil {
						return
					}
				}
			})
			_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			compare.True(t, llm.IsKind(err, llm.KindUnknown) && strings.Contains(err.Error(), c.want), "got %v, want %q", err, c.want)
		})
	}
}

// An answer is read in the encoding that its header declares, wherever it is cut.
func TestAnswersInOtherEncodings(t *testing.T) {
	t.Parallel()
	plain := "data: " + text("Grüße, 5 ") + "\r\n\r\n" + "data: " + text("°C") + "\r\n\r\ndata: " + done + "\r\n\r\n"
	utf16, latin := []byte{0xff, 0xfe}, []byte(nil)
	for _, r := range plain {
		utf16, latin = append(utf16, byte(r), byte(r>>8)), append(latin, byte(r))
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(plain))
	_ = z.Close()
	for name, c := range map[string]struct {
		contentType, encoding string
		body                  []byte
	}{
		"plain":     {"text/event-stream; charset=utf-8", "", []byte(plain)},
		"mark":      {"text/event-stream", "", []byte("\xEF\xBB\xBF" + plain)},
		"latin 1":   {"text/event-stream; charset=iso-8859-1", "", latin},
		"UTF-16":    {"text/event-stream;charset=UTF-16", "", utf16},
		"gzip":      {"text/event-stream", "gzip", zipped.Bytes()},
		"not known": {"text/event-stream; charset=x-none", "", []byte(plain)},
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.contentType)
			if c.encoding != "" {
				w.Header().Set("Content-Encoding", c.encoding)
			}
			for i := range c.body {
				_, _ = w.Write(c.body[i : i+1])
				_ = http.NewResponseController(w).Flush()
			}
		})
		compare.Equal(t, fmt.Sprintf("%s: got.Text", name), "Grüße, 5 °C", must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t).Text)
	}
}

// A character that a gateway cuts over the deltas, between its bytes or its escaped halves, is whole; text that looks like
// half of one stays.
func TestCharactersCutOverDeltas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ pieces, want string }{
		"surrogates":          {`A \ud83d|\uDE00 B`, "A 😀 B"},
		"bytes":               {"A \xf0\x9f|\x98\x80 B", "A 😀 B"},
		"three pieces":        {"\xf0|\x9f\x98|\x80", "😀"},
		"two characters":      {`\ud83d|\ude00\ud83d|\ude00`, "😀😀"},
		"empty delta between": {`\ud83d||\ude00`, "😀"},
		"one delta":           {`\ud83d\ude00`, "😀"},
		"backslashes":         {`C:\\ud83d|\\ude00`, `C:\ud83d\ude00`},
		"no rest":             {`A\ud83d|B`, "A\uFFFDB"},
	} {
		events := []string{}
		for piece := range strings.SplitSeq(c.pieces, "|") {
			events = append(events, strings.Replace(text("@"), "@", piece, 1))
		}
		s := serve(t, stream(append(events, finishStop, done)...))
		compare.Equal(t, name, c.want, must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t).Text)
	}
}

// Halves of characters of several texts are each joined with the rest of the same text.
func TestCharactersCutInSeveralTexts(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(strings.Split(`{"choices":[{"delta":{"reasoning_content": "r\ud83d", "content": "c\ud83c"}}]}
{"choices":[{"delta":{"content": "\udf81", "reasoning_content": "\ude00"}}]}
{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{\"a\":\"\ud83d"}},{"index":1,"id":"b","function":{"name":"x","arguments":"{\"index\":\"\ud83c"}}]}}]}
{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"\udf81\"}"}},{"index":0,"function":{"arguments":"\ude00\"}"}}]}}]}
`+finishStop+"\n"+done, "\n")...))
	got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
	compare.Equal(t, "thought, text, calls", []string{"r😀", "c🎁", `{"a":"😀"}`, `{"index":"🎁"}`},
		[]string{got.Reasoning, got.Text, got.ToolCalls[0].Arguments, got.ToolCalls[1].Arguments})
}

// sent asks the model and returns the request that the provider got.
func sent(t *testing.T, options openai.Options, req llm.Request) map[string]any {
	t.Helper()
	s := serve(t, stream(text("ok"), finishStop, done))
	must.Get(collect(t, s.model(t, options), req))(t)
	return s.Last().JSON()
}

// PDFs are file parts with their name and their bytes; other messages keep their bytes.
func TestO15Files(t *testing.T) {
	t.Parallel()
	pdf := llm.Media{Part: core.Part{Type: core.PartFile, MediaType: "application/pdf", Name: "plan <1>.pdf"}, Data: []byte("%PDF-1.7 scan")}
	image := llm.Media{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("one")}
	got := sent(t, openai.Options{}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{image, pdf}},
		{Role: core.RoleAssistant, Content: "a plan"},
		{Role: core.RoleUser, Content: `{"type":"binary"}`},
		{Role: core.RoleAssistant, Content: "and JSON"},
		{Role: core.RoleUser, Media: []llm.Media{pdf}},
	}})
	file := map[string]any{"type": "file", "file": map[string]any{
		"filename": "plan <1>.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjcgc2Nhbg==",
	}}
	want := []any{
		map[string]any{"role": "user", "content": []any{
			map[string]any{"type": "text", "text": "look"},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64,b25l"}}, file,
		}},
		map[string]any{"role": "assistant", "content": "a plan"},
		map[string]any{"role": "user", "content": `{"type":"binary"}`},
		map[string]any{"role": "assistant", "content": "and JSON"},
		map[string]any{"role": "user", "content": []any{file}},
	}
	compare.Equal[any](t, "messages", want, got["messages"])
}

func TestO17OneChoice(t *testing.T) {
	t.Parallel()
	if got, ok := sent(t, openai.Options{}, ask("hi"))["n"]; ok {
		t.Errorf("got n %v, want none", got)
	}
	s := serve(t, stream(
		`{"choices":[{"index":0,"delta":{"content":"one"}},{"index":1,"delta":{"content":"two"}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"},{"index":1,"delta":{},"finish_reason":"length"}]}`, done))
	got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
	compare.Equal(t, "the first choice only", []any{"one", core.FinishStop}, []any{got.Text, got.Finish})
}

func TestO19ReasoningFields(t *testing.T) {
	t.Parallel()
	const event = `{"choices":[{"delta":{"reasoning":"hm"}}]}`
	for name, event := range map[string]string{
		"OpenRouter": event,
		"DeepSeek":   `{"choices":[{"delta":{"reasoning_content":"hm","content":null}}]}`,
		"both":       `{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`,
		"Mistral":    `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(event, text("ok"), finishStop, done))
			got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
			compare.Equal(t, "reasoning, text", []any{"hm", "ok"}, []any{got.Reasoning, got.Text})
		})
	}
}

// refused returns the error that the model makes of a refusal.
func refused(t *testing.T, status int, body string, header ...string) *llm.Error {
	t.Helper()
	s := serve(t, refuse(status, body, header...))
	_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
	e := llm.AsError(err)
	must.True(t, e != nil, "got %v, want an *llm.Error", err)
	return e
}

func TestRefusalsByStatusAndCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status  int
		body    string
		kind    llm.ErrorKind
		code    string
		message string
	}{
		"OpenAI key": {
			401, `{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","code":"invalid_api_key"}}`,
			llm.KindAuth, "invalid_api_key", "Incorrect API key provided.",
		},
		"OpenAI rate": {
			429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`,
			llm.KindRateLimit, "rate_limit_exceeded", "Rate limit reached",
		},
		"OpenAI quota: waiting does not help": {
			429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`,
			llm.KindAuth, "insufficient_quota", "You exceeded your current quota",
		},
		"OpenAI model": {
			404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`,
			llm.KindNotFound, "model_not_found", "The model does not exist",
		},
		"OpenAI server":  {500, `{"error":{"message":"The server had an error","type":"server_error"}}`, llm.KindOverloaded, "server_error", "The server had an error"},
		"content filter": {400, `{"error":{"message":"filtered","code":"content_filter"}}`, llm.KindContentFilter, "content_filter", "filtered"},
		"overloaded":     {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.KindOverloaded, "overloaded_error", "Overloaded"},
		"Gemini in a list": {
			400, `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`,
			llm.KindAuth, "API_KEY_INVALID", "API key not valid.",
		},
		"Gemini busy": {503, `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, llm.KindOverloaded, "503", "The model is overloaded."},
		"Mistral detail": {
			422, `{"object":"error","message":{"detail":[{"msg":"Extra inputs are not permitted"}]},"type":"invalid_request_error","code":null}`,
			llm.KindInvalid, "invalid_request_error", "Extra inputs are not permitted",
		},
		"FastAPI":            {422, `{"detail":"no such field"}`, llm.KindInvalid, "", "no such field"},
		"Ollama":             {404, `{"error":"model 'x' not found"}`, llm.KindNotFound, "", "model 'x' not found"},
		"vLLM":               {400, `{"object":"error","message":"bad","type":"BadRequestError","param":null,"code":400}`, llm.KindInvalid, "400", "bad"},
		"code and sentence":  {400, `{"error":"bad_thing","message":"It is bad."}`, llm.KindInvalid, "bad_thing", "It is bad."},
		"OpenRouter credits": {402, `{"error":{"code":402,"message":"Insufficient credits"}}`, llm.KindAuth, "402", "Insufficient credits"},
		"OpenRouter filter":  {403, `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"]}}}`, llm.KindContentFilter, "moderation", "flagged"},
		"OpenRouter upstream": {
			429, `{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"message\":\"busy\",\"code\":\"rate_limit_exceeded\"}}","provider_name":"X"}}}`,
			llm.KindRateLimit, "rate_limit_exceeded", "busy",
		},
		"time-out of the server": {408, `{"error":{"code":408,"message":"timed out"}}`, llm.KindTimeout, "408", "timed out"},
		"gateway":                {502, "<html>Bad Gateway</html>", llm.KindOverloaded, "", "status 502 Bad Gateway"},
		"plain text":             {503, "no healthy upstream", llm.KindOverloaded, "", "no healthy upstream"},
		"busy":                   {500, `{"error":{"message":"The input queue is full: at most 64 requests"}}`, llm.KindOverloaded, "", "The input queue is full: at most 64 requests"},
		"nothing":                {500, "", llm.KindOverloaded, "", "status 500 Internal Server Error"},
		"redirect":               {302, "", llm.KindNotFound, "", "status 302 Found"},
		"no such address":        {404, "404 page not found", llm.KindNotFound, "", "404 page not found"},
		"filter behind a 500":    {500, `{"error":{"message":"Output blocked by content filtering policy","type":"api_error"}}`, llm.KindContentFilter, "api_error", "Output blocked by content filtering policy"},
		"not implemented":        {501, "", llm.KindInvalid, "", "status 501 Not Implemented"},
		"other members":          {400, `{"foo":1}`, llm.KindInvalid, "", "status 400 Bad Request"},
		"broken JSON":            {400, `{"error":`, llm.KindInvalid, "", `{"error":`},
		// Words in a sentence are no codes.
		"429 in a sentence":         {400, `{"error":{"message":"order 4290 of 429 rate limit exceeded"}}`, llm.KindInvalid, "", "order 4290 of 429 rate limit exceeded"},
		"length quoted":             {400, `{"error":{"message":"Invalid value: \"This model's maximum context length is 5 tokens\""}}`, llm.KindInvalid, "", `Invalid value: "This model's maximum context length is 5 tokens"`},
		"too large an output limit": {400, `{"error":{"message":"max_tokens is too large: 99999. This model supports at most 16384 completion tokens"}}`, llm.KindInvalid, "", "max_tokens is too large: 99999. This model supports at most 16384 completion tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := refused(t, c.status, c.body)
			compare.Equal(t, "code, status\nwant, code, status", []any{c.kind, c.code, c.message, c.status}, []any{e.Kind, e.Code, e.Message, e.Status})
			compare.Equal(t, "limit and requested: want none", []int{0, 0}, []int{e.Limit, e.Requested})
		})
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			header string
			want   time.Duration
		}{
			{"Retry-After: 12", 12 * time.Second},
			{"Retry-After: 1.5", 1500 * time.Millisecond},
			{"Retry-After: " + time.Now().Add(90*time.Second).UTC().Format(http.TimeFormat), 90 * time.Second},
			{"Retry-After: " + time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 0},
			{"Retry-After-Ms: 250", 250 * time.Millisecond},
			{"Retry-After: -5", 0},
			{"Retry-After: NaN", 0},
			{"Retry-After: 1e300", 24 * time.Hour},
			{"Retry-After: soon", 0},
		} {
			e := refused(t, 429, "{}", c.header)
			compare.Equal(t, "retry after, kind", []any{c.want, llm.KindRateLimit}, []any{e.RetryAfter, e.Kind})
		}
	})
}

func TestRetryAfterFromGoogle(t *testing.T) {
	t.Parallel()
	e := refused(t, 429, `[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]`)
	compare.Equal(t, "kind, retry after", []any{llm.KindRateLimit, 34 * time.Second}, []any{e.Kind, e.RetryAfter})
}
