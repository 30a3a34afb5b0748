package openai_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
