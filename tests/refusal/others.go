package refusal

import (
	"fmt"
	"net/http"
)

// Others are refusals that mean something else than a prompt that is too long. Some of
// them quote a user who speaks of one.
func Others() []Refusal {
	var list []Refusal
	for _, group := range []struct {
		status    int
		sentences []string
	}{
		{http.StatusBadRequest, parameters()},
		{http.StatusBadRequest, tools()},
		{http.StatusBadRequest, media()},
		{http.StatusBadRequest, content()},
		{http.StatusBadRequest, accounts()},
		{http.StatusBadRequest, models()},
		{http.StatusBadRequest, quotations()},
		{http.StatusUnprocessableEntity, []string{
			"unknown field `foo`, expected one of `messages`, `model`", "missing field `model`", "Failed to deserialize the JSON body: invalid type: string, expected f32",
		}},
		{http.StatusTooManyRequests, []string{
			"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 25000, Requested 8000. Please try again in 6s.",
			"Too many requests: the limit of tokens is exceeded", "Resource has been exhausted (e.g. check quota).", "Number of request tokens has exceeded your per-minute rate limit",
		}},
		{http.StatusPaymentRequired, []string{
			"This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 2000.", "Insufficient Balance",
		}},
		{http.StatusForbidden, []string{
			"Country, region, or territory not supported", "Your account has reached its token limit",
		}},
		{http.StatusNotFound, []string{
			"The model `x` does not exist", "No endpoints found that support the requested context length",
		}},
		{http.StatusUnauthorized, []string{
			"Incorrect API key provided: sk-proj-abcd", "Token expired: the maximum length of a session is over",
		}},
	} {
		for _, sentence := range group.sentences {
			form := wrappers()[len(list)%3]
			list = append(list, Refusal{
				Name: fmt.Sprintf("%03d %.40s", len(list), sentence), Status: group.status, Body: form.wrap(sentence), Clear: true,
			})
		}
	}
	return append(list, structured()...)
}

func parameters() []string {
	return []string{
		"temperature must be between 0 and 2",
		"max_tokens is too large: 99999. This model supports at most 16384 completion tokens.",
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		"max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku",
		"Unable to submit request because it has a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
		"Unrecognized request argument supplied: foo",
		"Invalid value for 'top_p': expected a number",
		"logprobs is not supported for this model",
		"Invalid type for 'stop': expected a list of strings",
		"stop: at most 4 sequences are allowed",
		"'seed' is not supported",
		"Extra inputs are not permitted",
		"thinking.budget_tokens: Input should be greater than or equal to 1024",
		"`max_tokens` must be greater than `thinking.budget_tokens`",
		"response_format of type json_schema is not supported with this model",
		"Invalid schema for response_format 'x': schema must be an object",
		"messages: roles must alternate between \"user\" and \"assistant\"",
		"messages.0.role: unexpected value; permitted: 'user', 'assistant'",
		"A maximum of 4 blocks with cache_control may be provided. Found 5.",
		"stream_options is not supported when stream is false: unknown field",
		"logit_bias: expected a map of token ids to numbers",
		"Invalid 'metadata': too many properties. Expected an object with at most 16 properties",
		"Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
		"dimensions are not supported by this embedding model",
		"This model does not support system messages: unsupported role",
		"The parameter `seed` specified in the request is not valid: expected an integer",
		"reasoning_effort is not supported",
		"Missing required parameter: 'messages[0].content'.",
		"messages.0.content: Field required",
		"Unknown parameters: foo, bar",
	}
}

func tools() []string {
	return []string{
		"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
		"Invalid schema for function 'search': In context=(), object schema missing properties",
		"tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
		"messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01",
		"This model does not support tools",
		"tool_choice is only allowed when 'tools' are specified",
		"Invalid function name: names are limited to 64 characters",
		"Failed to call a function. Please adjust your tools.",
		"Function calling is not enabled for this model: unsupported tools",
		"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set: not supported tools",
	}
}

func media() []string {
	return []string{
		"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
		"Invalid image: the picture cannot be decoded",
		"Too many images: at most 20 images are allowed",
		"Image dimensions exceed the maximum of 8000 pixels",
		"This model does not support image input",
		"Unsupported media type of the attachment",
		"A PDF may have at most 100 pages; this document has 120",
		"Could not download the file: not found",
		"Audio is longer than 25 minutes: unsupported file",
		"You uploaded an unsupported image. Please make sure your image is valid.",
	}
}

func content() []string {
	return []string{
		"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
		"Your request was flagged by our moderation system",
		"Output blocked by content filtering policy",
		"This content may violate our usage policies",
		"The prompt contains prohibited content and was blocked for safety",
	}
}

func accounts() []string {
	return []string{
		"API key not valid. Please pass a valid API key.",
		"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
		"You exceeded your current quota, please check your plan and billing details.",
		"Billing hard limit has been reached",
		"Monthly token quota exceeded for this subscription",
		"User location is not supported for the API use: unsupported region",
		"Too many concurrent requests: your limit is 4",
		"Your organization does not have permission to use this model",
	}
}

func models() []string {
	return []string{
		"The model `gpt-9` does not exist or you do not have access to it.",
		"model gpt-4o-mini-2 not found",
		"invalid model: unknown",
		"No such model: x",
		"The model has been deprecated: use another",
		"model is required",
		"Model x is not supported by this provider",
	}
}

func quotations() []string {
	return []string{
		`Invalid value: "This model's maximum context length is 2048 tokens"`,
		`Invalid 'messages[0].name': "prompt is too long: 9000 tokens > 1024 maximum" does not match the expected pattern`,
		`Could not parse the function arguments: {"role": "user", "content": "error: context length exceeded", "message": "prompt is too long"}`,
		`1 validation error: unknown role, input_value={'role': 'user', 'content': 'the context window exceeds the limit of 1000 tokens'}`,
		"Unknown role: “the prompt exceeds the maximum context length of 512 tokens”",
	}
}

// structured are refusals whose codes or members say what is meant.
func structured() []Refusal {
	const bad = http.StatusBadRequest
	list := []Refusal{
		{Status: bad, Body: `{"error":{"message":"The response was filtered","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`},
		{Status: bad, Body: `{"error":{"message":"Invalid length","param":"tools[0].function.name","code":"string_above_max_length"}}`},
		{Status: bad, Body: `{"error":{"message":"Expected a shorter value: the length exceeds the limit","param":"metadata.key"}}`},
		{Status: bad, Body: `{"detail":[{"type":"less_than_equal","loc":["body","temperature"],"msg":"Input should be less than or equal to 2","input":"the prompt exceeds the maximum context length"}]}`},
		{Status: bad, Body: `{"detail":[{"type":"string_type","loc":["body","tools",0,"name"],"msg":"Input should be a valid string","input":{"message":"prompt is too long"}}]}`},
		{Status: bad, Body: `{"error":{"message":"Your input was flagged","code":"content_policy_violation"}}`},
		{Status: bad, Body: `{"error":{"message":"quota","code":"insufficient_quota"}}`},
		{Status: bad, Body: `[{"error":{"code":400,"message":"API key expired.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`},
		{Status: bad, Body: `{"error":{"message":"no such model","code":"model_not_found"}}`},
		{Status: http.StatusForbidden, Body: `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"the prompt is too long"}}}`},
		{Status: bad, Body: `{"error":{"message":"Tool call validation failed: unknown tool","code":"tool_use_failed","failed_generation":"{\"message\":\"prompt is too long: 9000 tokens > 1000 maximum\"}"}}`},
		{Status: http.StatusTooManyRequests, Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`},
	}
	for i := range list {
		list[i].Name, list[i].Clear = fmt.Sprintf("structured %02d", i), true
	}
	return list
}
