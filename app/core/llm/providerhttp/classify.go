package providerhttp

import (
	"net/http"
	"strings"

	"bobbin/app/core/llm"
)

// classify classifies a failure: by the provider's codes, compared whole, by whether the
// report says that the prompt is too long, and by the status. Codes for a rate
// limit and for a busy server come with prompts that are too long, too.
// isUnclear reports that the reason of a refusal could not be determined.
func (r *report) classify() (kind llm.ErrorKind, isUnclear bool) {
	said := r.readMeaning()
	for _, code := range r.codes {
		k, ok := kindOfCode(code)
		if ok && (said != tooLong || k == llm.KindAuth || k == llm.KindContentFilter || k == llm.KindNotFound) {
			return k, false
		}
	}
	if said == tooLong {
		return llm.KindContextLength, false
	}
	if k, ok := kindOfSentence(r.message()); ok && r.status < 500 {
		return k, false
	}
	if k, ok := kindOfStatus(r.status); ok {
		return k, k == llm.KindInvalid && said == unclear && mayRefuseLength(r.status)
	}
	for _, code := range r.codes {
		if k, ok := kindOfType(code); ok {
			return k, false
		}
	}
	return llm.KindUnknown, false
}

// kindOfCode classifies by codes that are more specific than the status.
func kindOfCode(code string) (llm.ErrorKind, bool) {
	switch code {
	case "rate_limit_exceeded", "rate_limit_error", "too_many_requests", "RESOURCE_EXHAUSTED":
		return llm.KindRateLimit, true
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated",
		"invalid_api_key", "API_KEY_INVALID", "UNAUTHENTICATED", "PERMISSION_DENIED", "authentication_error", "permission_error", "billing_error",
		"unsupported_country_region_territory":
		// A quota that is used up is reported as 429, but waiting does not help.
		return llm.KindAuth, true
	case "model_not_found", "NOT_FOUND":
		return llm.KindNotFound, true
	case "content_filter", "content_policy_violation", "moderation", "ResponsibleAIPolicyViolation",
		"bio_policy", "cyber_policy", "misalignment_policy_violation", "image_content_policy_violation":
		return llm.KindContentFilter, true
	case "overloaded_error", "engine_overloaded", "server_overloaded", "slow_down", "UNAVAILABLE", "INTERNAL":
		return llm.KindOverloaded, true
	case "DEADLINE_EXCEEDED":
		return llm.KindTimeout, true
	}
	return "", false
}

// kindOfSentence classifies messages of Anthropic and OpenAI whose status and type are misleading. The sentences are compared from their beginning.
func kindOfSentence(sentence string) (llm.ErrorKind, bool) {
	switch {
	case strings.HasPrefix(sentence, "Your credit balance is too low to access the Anthropic API"):
		return llm.KindAuth, true
	case strings.HasPrefix(sentence, "Output blocked by content filtering policy"),
		strings.HasPrefix(sentence, "Invalid prompt: your prompt was flagged as potentially violating"):
		return llm.KindContentFilter, true
	}
	return "", false
}

// kindOfStatus classifies by the HTTP status.
func kindOfStatus(status int) (llm.ErrorKind, bool) {
	switch status {
	case 0, http.StatusOK:
		return "", false
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return llm.KindAuth, true
	case http.StatusNotFound:
		return llm.KindNotFound, true
	case http.StatusRequestTimeout:
		return llm.KindTimeout, true
	case http.StatusTooManyRequests:
		return llm.KindRateLimit, true
	case http.StatusNotImplemented:
		return llm.KindInvalid, true
	}
	if status >= 500 {
		return llm.KindOverloaded, true
	}
	return llm.KindInvalid, true // 3xx: we do not follow redirects
}

// kindOfType classifies by types that replace the status in the middle of a stream.
func kindOfType(code string) (llm.ErrorKind, bool) {
	switch strings.ToLower(code) {
	case "server_error", "internal_error", "internal_server_error", "internalservererror", "service_unavailable", "api_error":
		return llm.KindOverloaded, true
	case "invalid_request_error", "badrequesterror", "invalid_argument", "request_too_large",
		"invalid_prompt", "invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small",
		"image_parse_error", "image_file_too_large", "unsupported_image_media_type", "empty_image_file":
		return llm.KindInvalid, true
	case "timeout", "timeout_error", "request_timeout":
		return llm.KindTimeout, true
	case "not_found_error", "notfounderror":
		return llm.KindNotFound, true
	}
	return "", false
}
