package exchange

import (
	"net/http"
	"strings"

	"bobbin/app/core/llm"
)

// kind classifies a failure: first a prompt that is too long, as providers say
// it; then by the provider's words, compared whole; then by the status. A
// sentence is never searched for words such as "rate limit" or "429" (O11): it
// may quote the user.
func (r *report) kind() llm.ErrorKind {
	if r.tooLong() {
		return llm.KindContextLength
	}
	for _, w := range r.words {
		if k, ok := kindOfWord(w); ok {
			return k
		}
	}
	if k, ok := kindOfSentence(r.message); ok && r.status < 500 {
		return k
	}
	if k, ok := kindOfStatus(r.status); ok {
		return k
	}
	for _, w := range r.words {
		if k, ok := kindOfType(w); ok {
			return k
		}
	}
	return llm.KindUnknown
}

// tooLong reports whether the prompt, or the prompt and its answer, do not fit,
// and takes the numbers from the sentence.
func (r *report) tooLong() bool {
	switch r.status {
	case 0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusBadGateway:
	default:
		return false
	}
	told, said := readTooLong(r.message, r.status)
	if told.limit > 0 {
		r.limit = told.limit
	}
	if told.requested > 0 {
		r.requested, r.prompt = told.requested, told.prompt
	}
	if said {
		return true
	}
	for _, w := range r.words {
		switch w {
		case "context_length_exceeded", "exceed_context_size_error", "model_max_prompt_tokens_exceeded":
			return true
		}
	}
	return false
}

// kindOfWord knows the codes that say more than the status.
func kindOfWord(word string) (llm.ErrorKind, bool) {
	switch word {
	case "rate_limit_exceeded", "rate_limit_error", "too_many_requests", "RESOURCE_EXHAUSTED":
		return llm.KindRateLimit, true
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "account_deactivated",
		"invalid_api_key", "API_KEY_INVALID", "UNAUTHENTICATED", "PERMISSION_DENIED", "authentication_error", "permission_error", "billing_error",
		"unsupported_country_region_territory":
		// A quota that is used up is reported as 429, but waiting does not help.
		return llm.KindAuth, true
	case "model_not_found", "NOT_FOUND":
		return llm.KindNotFound, true
	case "content_filter", "content_policy_violation", "moderation", "ResponsibleAIPolicyViolation":
		return llm.KindContentFilter, true
	case "overloaded_error", "engine_overloaded", "server_overloaded", "slow_down", "UNAVAILABLE", "INTERNAL":
		return llm.KindOverloaded, true
	case "DEADLINE_EXCEEDED":
		return llm.KindTimeout, true
	}
	return "", false
}

// kindOfSentence knows what Anthropic says with a status and a type that say
// something else. The sentences are compared from their beginning.
func kindOfSentence(sentence string) (llm.ErrorKind, bool) {
	switch {
	case strings.HasPrefix(sentence, "Your credit balance is too low to access the Anthropic API"):
		return llm.KindAuth, true
	case strings.HasPrefix(sentence, "Output blocked by content filtering policy"):
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

// kindOfType knows the types that stand for a status, where there is none: in
// the middle of a stream.
func kindOfType(word string) (llm.ErrorKind, bool) {
	switch strings.ToLower(word) {
	case "server_error", "internal_error", "internal_server_error", "internalservererror", "service_unavailable", "api_error":
		return llm.KindOverloaded, true
	case "invalid_request_error", "badrequesterror", "invalid_argument", "request_too_large":
		return llm.KindInvalid, true
	case "timeout", "timeout_error", "request_timeout":
		return llm.KindTimeout, true
	case "not_found_error", "notfounderror":
		return llm.KindNotFound, true
	}
	return "", false
}
