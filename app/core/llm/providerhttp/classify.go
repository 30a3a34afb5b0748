package providerhttp

import (
	"net/http"
	"slices"
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
		k := kindOfCode(code)
		if k != "" && (said != tooLong || k == llm.KindAuth || k == llm.KindContentFilter || k == llm.KindNotFound) {
			return k, false
		}
	}
	if said == tooLong {
		return llm.KindContextLength, false
	}
	if k := kindOfSentence(r.message()); k != "" {
		return k, false
	}
	if k := kindOfStatus(r.status); k != "" {
		return k, k == llm.KindInvalid && said == unclear && mayRefuseLength(r.status)
	}
	for _, code := range r.codes {
		if k := kindOfType(strings.ToLower(code)); k != "" {
			return k, false
		}
	}
	return llm.KindUnknown, false
}

// kindOfWord returns the kind in whose list the word is; empty = in none.
func kindOfWord(word string, lists map[llm.ErrorKind]string) llm.ErrorKind {
	for kind, words := range lists {
		if slices.Contains(strings.Fields(words), word) {
			return kind
		}
	}
	return ""
}

// kindOfCode classifies by codes that are more specific than the status. A quota that is used up is
// reported as 429, but waiting does not help.
func kindOfCode(code string) llm.ErrorKind {
	return kindOfWord(code, map[llm.ErrorKind]string{
		llm.KindRateLimit: "rate_limit_exceeded rate_limit_error too_many_requests RESOURCE_EXHAUSTED",
		llm.KindAuth: "insufficient_quota billing_hard_limit_reached billing_not_active account_deactivated invalid_api_key API_KEY_INVALID UNAUTHENTICATED " +
			"PERMISSION_DENIED authentication_error permission_error billing_error unsupported_country_region_territory",
		llm.KindNotFound: "model_not_found NOT_FOUND",
		llm.KindContentFilter: "content_filter content_policy_violation moderation ResponsibleAIPolicyViolation bio_policy cyber_policy " +
			"misalignment_policy_violation image_content_policy_violation",
		llm.KindOverloaded: "overloaded_error engine_overloaded server_overloaded slow_down UNAVAILABLE INTERNAL",
		llm.KindTimeout:    "DEADLINE_EXCEEDED",
	})
}

// kindOfType classifies by types, in lower case, that replace the status in the middle of a stream.
func kindOfType(code string) llm.ErrorKind {
	return kindOfWord(code, map[llm.ErrorKind]string{
		llm.KindOverloaded: "server_error internal_error internal_server_error internalservererror service_unavailable api_error",
		llm.KindInvalid: "invalid_request_error badrequesterror invalid_argument request_too_large invalid_prompt invalid_image invalid_image_format " +
			"invalid_base64_image invalid_image_url image_too_large image_too_small image_parse_error image_file_too_large unsupported_image_media_type empty_image_file",
		llm.KindTimeout:  "timeout timeout_error request_timeout",
		llm.KindNotFound: "not_found_error notfounderror",
	})
}

// kindOfSentence classifies messages of Anthropic, OpenAI and LM Studio whose status and type are misleading, or those of a
// gateway. The sentences are compared from their beginning.
func kindOfSentence(sentence string) llm.ErrorKind {
	switch {
	case strings.HasPrefix(sentence, "Unexpected endpoint or method"):
		return llm.KindNotFound
	case strings.HasPrefix(sentence, "Your credit balance is too low to access the Anthropic API"):
		return llm.KindAuth
	case strings.HasPrefix(sentence, "Output blocked by content filtering policy"),
		strings.HasPrefix(sentence, "Invalid prompt: your prompt was flagged as potentially violating"):
		return llm.KindContentFilter
	}
	return ""
}

// kindOfStatus classifies by the HTTP status.
func kindOfStatus(status int) llm.ErrorKind {
	switch status {
	case 0, http.StatusOK:
		return ""
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return llm.KindAuth
	case http.StatusRequestTimeout:
		return llm.KindTimeout
	case http.StatusTooManyRequests:
		return llm.KindRateLimit
	}
	switch {
	case status < 400, status == http.StatusNotFound: // we do not follow redirects
		return llm.KindNotFound
	case status >= 500 && status != http.StatusNotImplemented:
		return llm.KindOverloaded
	}
	return llm.KindInvalid
}
