package refusal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"bobbin/tests/seed"
)

// Variants returns n generated refusals of prompts that are too long: other words, other
// numbers, other forms, and some that say nothing. The same n gives the same refusals.
func Variants(n int) []Refusal {
	random := seed.Fixed(7, uint64(n))
	wordings, forms, silent := wordings(), wrappers(), silences()
	out := make([]Refusal, 0, n)
	for i := range n {
		status := []int{http.StatusBadRequest, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}[random.IntN(4)]
		if i%8 == 7 {
			s := silent[(i/8)%len(silent)]
			out = append(out, Refusal{Name: fmt.Sprintf("%03d silent", i), Status: status, Body: s})
			continue
		}
		w, f := wordings[random.IntN(len(wordings))], forms[random.IntN(len(forms))]
		body := f.wrap(w.text)
		if random.IntN(3) == 0 { // a gateway before the provider
			outer := forms[random.IntN(len(forms))]
			body, f.name = outer.wrap(body), outer.name+" of "+f.name
		}
		out = append(out, Refusal{
			Name: fmt.Sprintf("%03d %s", i, f.name), Status: status, Body: body, Clear: true, Limit: strings.Contains(w.text, "{limit}"),
		})
	}
	return out
}

type wording struct{ text string }

// wordings are sentences that no list of vendors has.
func wordings() []wording {
	var out []wording
	for _, text := range []string{
		"The prompt has {prompt} tokens; the maximum is {limit}.",
		"Maximum context of {limit} tokens exceeded: the request has {prompt}.",
		"Input too long",
		"Too many input tokens: {prompt} (limit {limit})",
		"Request contains {prompt} tokens, which is more than the model's limit of {limit} tokens",
		"Token limit exceeded. Limit: {limit}, requested: {total}.",
		"context overflow",
		"Sequence length {prompt} is longer than max_position_embeddings: the maximum context is {limit}",
		"Conversation too long for this model",
		"Your prompt (approximately {prompt} tokens) exceeds the model's context window of {limit} tokens.",
		"ValidationException: Input tokens exceed the limit",
		"The total length of the messages must be at most {limit} tokens",
		"prompt length {prompt} exceeds n_ctx; the context window has only {limit} tokens",
		"Prompt has {prompt} tokens, but the configured context size is {limit} tokens",
		"Please shorten your prompt.",
		"max context length reached",
		"输入长度超过模型上下文限制",
		"上下文长度超出",
		"input_tokens ({prompt}) + max_tokens ({output}) must not exceed {limit}",
		"Input length ({prompt}) exceeds model's maximum context length ({limit})",
		"Your prompt is over the limit of {limit} tokens.",
		"This request exceeds the model's maximum sequence length of {limit} tokens (got {prompt}).",
		"prompt too large: {prompt} > {limit}",
		"The messages are too long. Maximum: {limit} tokens, received: {prompt} tokens.",
		"input exceeds maximum sequence length",
		"Context length exceeded: {prompt} + {output} > {limit}",
		"This request would need {total} tokens of context, the limit is {limit}",
		"Error: the model's context (limit {limit} tokens) is too small for the prompt ({prompt} tokens)",
		"Requested tokens ({total}) exceed context window of {limit}",
		"Invalid request: too many tokens in the prompt",
	} {
		out = append(out, wording{text})
	}
	return out
}

// wrapper puts a sentence, or a whole answer, into an answer.
type wrapper struct {
	name string
	wrap func(text string) string
}

func wrappers() []wrapper {
	quoted := func(text string) string {
		raw, err := json.Marshal(text)
		if err != nil { // a string can always be written
			panic(err)
		}
		return string(raw)
	}
	// python is a string as Python prints it.
	python := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(text) + "'"
	}
	in := func(format string) func(string) string {
		return func(text string) string { return strings.ReplaceAll(format, "%s", quoted(text)) }
	}
	return []wrapper{
		{"error.message", in(`{"error":{"message":%s,"type":"invalid_request_error","param":null,"code":null}}`)},
		{"error", in(`{"error":%s}`)},
		{"message", in(`{"message":%s}`)},
		{"detail", in(`{"detail":%s}`)},
		{"detail list", in(`{"detail":[{"loc":["body","messages"],"msg":%s,"type":"value_error"}]}`)},
		{"errors", in(`{"errors":[{"code":"bad_request","message":%s}]}`)},
		{"list", in(`[{"error":{"code":400,"message":%s,"status":"INVALID_ARGUMENT"}}]`)},
		{"raw", in(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":%s,"provider_name":"X"}}}`)},
		{"three levels", in(`{"response":{"body":{"error":{"error":{"message":%s}}}}}`)},
		{"base_resp", in(`{"base_resp":{"status_code":2013,"status_msg":%s}}`)},
		{"fault", in(`{"fault":{"faultstring":%s,"detail":{"errorcode":"steps.x"}}}`)},
		{"AWS", in(`{"__type":"ValidationException","Message":%s}`)},
		{"text", func(text string) string { return text }},
		{"Python", func(text string) string {
			return `{"detail":` + quoted(`Error code: 400 - {'error': {'message': `+python(text)+`, 'type': 'BadRequestError', 'code': None}}`) + `}`
		}},
		{"exception", func(text string) string {
			return `{"error":{"message":` + quoted("litellm.BadRequestError: OpenAIException - "+text) + `,"code":"400"}}`
		}},
		{"cut off", func(text string) string { return `{"error":{"message":` + quoted(text) + `,"type":"invalid_requ` }},
	}
}

// silences are answers that say that something is wrong, and not what.
func silences() []string {
	return []string{
		"", "{}", "null", `{"error":null}`, `{"error":{"message":""}}`, "Bad Request", `{"message":"invalid request"}`, `{"error":{"message":"Provider returned error","code":400}}`,
		"<html><head><title>413 Request Entity Too Large</title></head></html>", `{"error":true}`, `{"status":"failure"}`, `{"error":{"code":"bad_request","message":"The request was malformed."}}`,
		`{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`,
		`{"error":{"message":"Bad Request (request id: 2026112610304012345)","type":"new_api_error"}}`,
		`{"error":{"message":"The request is invalid: Invalid request parameters. Please check your input and try again. Please check the request body, required fields, and request format."}}`,
		`{"error":{"message":"Unknown error","code":"unknown_error"}}`, `{"detail":"An unknown error occurred"}`, `{"error":"invalid_request_error: unexpected error"}`,
		`{"error":{"message":"Upstream failed: invalid JSON response from backend"}}`, `{"message":"Expected maxLength: 32000, actual: 51234"}`,
		`{"error":{"message":"This request is not allowed by a policy","request_id":"8d"}}`,
	}
}
