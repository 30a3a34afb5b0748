// Package refusal is what model providers, servers and gateways answer when they refuse
// a request: because the prompt is too long, in the words of each of them and in
// generated ones, or for another reason.
package refusal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"bobbin/tests/seed"
)

// Numbers are what a refusal tells of, in tokens.
type Numbers struct{ Limit, Prompt, Output int }

// Refusal is a way to refuse a request.
type Refusal struct {
	Name   string
	Status int
	// Body makes the answer. In it {limit}, {prompt}, {output} and {total} stand for the
	// numbers.
	Body string
	// Clear says that the words tell what is wrong. Otherwise only a shorter prompt shows
	// whether it was too long.
	Clear bool
	Limit bool // the words tell the limit
}

// Text returns the answer's body with the numbers.
func (r Refusal) Text(n Numbers) string {
	return strings.NewReplacer("{limit}", fmt.Sprint(n.Limit), "{prompt}", fmt.Sprint(n.Prompt),
		"{output}", fmt.Sprint(n.Output), "{total}", fmt.Sprint(n.Prompt+n.Output)).Replace(r.Body)
}

// Vendors are the words of real servers for a prompt that is too long.
func Vendors() []Refusal {
	const bad, large, unprocessable, broken = http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError
	said := func(name string, status int, body string, tellsLimit bool) Refusal {
		return Refusal{Name: name, Status: status, Body: body, Clear: true, Limit: tellsLimit}
	}
	return []Refusal{
		said("llama.cpp", bad, `{"error":{"code":400,"message":"request ({prompt} tokens) exceeds the available context size ({limit} tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":{prompt},"n_ctx":{limit}}}`, true),
		said("llama.cpp, older", broken, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, false),
		said("vLLM", bad, `{"object":"error","message":"This model's maximum context length is {limit} tokens. However, your request has {prompt} input tokens. Please reduce the length of the input messages.","type":"BadRequestError","param":null,"code":400}`, true),
		said("vLLM, both", bad, `{"object":"error","message":"This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, true),
		said("vLLM, max_tokens", bad, `{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: {output}. This model's maximum context length is {limit} tokens and your request has {prompt} input tokens ({output} > {limit} - {prompt}).","type":"BadRequestError","param":"max_tokens","code":400}}`, true),
		said("vLLM, no room for an answer", bad, `{"object":"error","message":"max_tokens must be at least 1, got -7584. (parameter=max_tokens, value=-7584)","type":"BadRequestError","param":"max_tokens","code":400}`, false),
		said("vLLM, decoder", bad, "{\"object\":\"error\",\"message\":\"The decoder prompt (length {prompt}) is longer than the maximum model length of {limit}. Make sure that `max_model_len` is no smaller than the number of text tokens.\",\"type\":\"BadRequestError\",\"code\":400}", true),
		said("OpenAI", bad, `{"error":{"message":"This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt} tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true),
		said("OpenAI, window", bad, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, false),
		said("OpenAI, configured", bad, `{"error":{"message":"Input tokens exceed the configured limit of {limit} tokens. Your messages resulted in {prompt} tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true),
		said("Azure", bad, `{"error":{"message":"This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, true),
		said("Mistral", bad, `{"object":"error","message":"Prompt contains {prompt} tokens and 0 draft tokens, too large for model with {limit} maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, true),
		said("Groq", bad, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, false),
		said("Groq, minute", large, "{\"error\":{\"message\":\"Request too large for model `llama-3.3-70b` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit {limit}, Requested {total}, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}", true),
		said("OpenRouter", bad, `{"error":{"message":"This endpoint's maximum context length is {limit} tokens. However, you requested about {total} tokens ({prompt} of text input, {output} in the output). Please reduce the length of either one, or use the \"middle-out\" transform to compress your prompt automatically.","code":400,"metadata":{"provider_name":null}}}`, true),
		said("OpenRouter, Anthropic", bad, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: {prompt} tokens > {limit} maximum\"}}","provider_name":"Anthropic"}}}`, true),
		said("OpenRouter, OpenAI", bad, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\n  \"error\": {\n    \"message\": \"This model's maximum context length is {limit} tokens. However, your messages resulted in {prompt} tokens.\",\n    \"code\": \"context_length_exceeded\"\n  }\n}","provider_name":"OpenAI"}},"user_id":"user_1"}`, true),
		said("Anthropic", bad, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: {prompt} tokens > {limit} maximum"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`, true),
		said("Anthropic, total", bad, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: {prompt} + {output} > {limit}, decrease input length or `max_tokens` and try again\"}}", true),
		said("Gemini", bad, `[{"error":{"code":400,"message":"The input token count ({prompt}) exceeds the maximum number of tokens allowed ({limit}).","status":"INVALID_ARGUMENT"}}]`, true),
		said("SGLang", bad, `{"object":"error","message":"The input ({prompt} tokens) is longer than the model's context length ({limit} tokens).","type":"BadRequestError","param":null,"code":400}`, true),
		said("NIM", bad, `{"object":"error","message":"This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, true),
		said("xAI", bad, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is {limit} but the request contains {prompt} tokens."}`, true),
		said("DeepSeek", bad, `{"error":{"message":"This model's maximum context length is {limit} tokens. However, you requested {total} tokens ({prompt} in the messages, {output} in the completion). Please reduce the length of the messages or completion.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, true),
		said("LiteLLM", bad, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: Hosted_vllmException - This model's maximum context length is {limit} tokens. However, you requested {output} output tokens and your prompt contains at least {prompt} input tokens, for a total of at least {total} tokens.","type":null,"param":null,"code":"400"}}`, true),
		said("Ollama", bad, `{"error":{"message":"prompt too long; exceeded max context length by 4217 tokens (ref: 1)","type":"invalid_request_error","param":null,"code":null}}`, false),
		said("LM Studio", bad, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"}`, false),

		said("DashScope", bad, `{"error":{"message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, {limit}]","type":"invalid_request_error","param":null,"code":"invalid_parameter_error"},"request_id":"4b1c"}`, true),
		said("Zhipu", bad, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, false),
		said("Kimi", bad, `{"error":{"message":"Invalid request: Your request exceeded model token limit: {limit} (requested: {prompt})","type":"invalid_request_error"}}`, true),
		said("MiniMax", bad, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)","http_code":"400"},"request_id":"05a2"}`, false),
		said("Fireworks", bad, `{"error":{"object":"error","type":"invalid_request_error","code":"invalid_request_error","message":"The prompt is too long: {prompt}, model maximum context length: {limit}"}}`, true),
		said("Bedrock", bad, `{"message":"Input is too long for requested model."}`, false),
		said("Bedrock, Anthropic", bad, `{"message":"The model returned the following errors: prompt is too long: {prompt} tokens > {limit} maximum"}`, true),
		said("TGI", unprocessable, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {limit}. Given: {prompt} `inputs` tokens and {output} `max_new_tokens`\",\"error_type\":\"validation\"}", true),
		said("TGI, inputs", unprocessable, "{\"error\":{\"message\":\"Input validation error: `inputs` must have less than {limit} tokens. Given: {prompt}\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}", true),
		said("GitHub Copilot", bad, `{"error":{"message":"prompt token count of {prompt} exceeds the limit of {limit}","code":""}}`, true),
		said("MLX", bad, `{"error":"Prompt exceeds maximum context length"}`, false),
		said("LiteLLM, detail", bad, `{"detail":"ContextWindowExceededError: Hosted_vllmException - {\"error\":{\"message\":\"This model's maximum context length is {limit} tokens. However, your request has {prompt} input tokens.\",\"type\":\"BadRequestError\",\"code\":400}}"}`, true),
		said("TrueFoundry", bad, `{"status":"failure","message":"openrouter error: Provider returned error | metadata: {\"raw\":\"{\\\"error\\\":{\\\"message\\\":\\\"This endpoint's maximum context length is {limit} tokens. However, you requested about {total} tokens.\\\",\\\"code\\\":400}}\",\"provider_name\":\"Chutes\"}"}`, true),
		said("LM Studio, 0.3", bad, `{"error":"Trying to keep the first {prompt} tokens when context the overflows. However, the model is loaded with context length of only {limit} tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}`, true),
		said("Cloudflare", bad, `{"errors":[{"message":"AiError: AiError: The estimated number of input and maximum output tokens ({total}) exceeded this model context window limit ({limit}). (0e2c)","code":5021}],"success":false,"result":{},"messages":[]}`, true),
		said("Cloudflare, vLLM", bad, `{"success":false,"errors":[{"code":8007,"message":"This model's maximum context length is {limit} tokens. However, you requested {total} tokens."}],"messages":[],"result":null}`, true),
		{Name: "Cerebras", Status: bad},
		{Name: "New API", Status: bad, Body: `{"error":{"message":"bad response status code 400 (request id: 20261126103040123456789AbCdEfGh)","type":"upstream_error","param":"400","code":"bad_response_status_code"}}`},
		said("Cohere", bad, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed {limit} - received {prompt}. Try using a shorter prompt, or enable prompt truncating."}`, true),
		said("OpenRouter, raw", bad, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Input length {prompt} exceeds the maximum allowed input length of {limit} tokens.\",\"type\":\"BadRequestError\",\"code\":400}","provider_name":"DeepInfra"}}}`, true),
	}
}

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
