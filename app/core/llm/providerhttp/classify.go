package providerhttp

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
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

// meaning is what a provider's own words say of a refused request.
type meaning int

const (
	unclear   meaning = iota // nothing that is known
	tooLong                  // the prompt, or the prompt and its answer, do not fit
	otherwise                // something else is wrong
)

// The sentences of providers, in lower case and without what they quote.
var (
	// ofMinute is more than a minute's allowance in one request (OpenAI, Groq): waiting does not help,
	// a shorter prompt does.
	ofMinute = regexp.MustCompile(`^request too large for .+ tokens per min`)
	// namesWindow speaks of the window itself, or (vLLM) of an answer for which it leaves no token.
	namesWindow = regexp.MustCompile(`contexts?[\s_-]*(?:length|window|size|limit)|\bmax(?:imum)?[\s_-](?:allowed )?(?:prompt|input|model|sequence)[\s_-]length` +
		`|\brange of input length|\bmax_\w*tokens\b[^.]*\bgot -\d`)
	// saysTooLong says of the prompt that it is too long.
	saysTooLong = regexp.MustCompile(`\b(?:prompt|input|message|conversation|sequence|request)s?\b[^.]{0,40}\btoo (?:long|large)\b|\btoo many (?:\w+ )?tokens\b` +
		`|\b(?:prompt|input|(?:input_|prompt_)?token|message|sequence|request)s?\b[^.]{0,60}(?:\bexceed|\b(?:longer|larger|greater|more|less|fewer) than\b|\bat most\b|\bover the limit\b|<=)` +
		`|\b(?:reduce|shorten) (?:the length|your)\b|过长|超长|太长|超(?:出|过)[^。]*(?:上下文|长度|限制)|(?:上下文|长度)[^。]*(?:超|限制)`)
	// account is what has nothing to do with the request.
	account = regexp.MustCompile(`\b(?:quota|billing|credits?|balance|subscription|rate.?limit\w*|api.?key|permission|concurren\w*)\b|\bper (?:minute|min|hour|day|month)\b`)
	// otherCause is what a request may be refused for besides its length.
	otherCause = regexp.MustCompile(`\b(?:images?|pictures?|pixels?|audio|pdf|files?|attachments?|documents?|media|tools?|tool_\w+|functions?|schema|response_format|` +
		`temperature|top_[pk]|logprobs?|logit_bias|stop|seed|stream_options|cache_control|thinking|reasoning\w*|metadata|roles?|deprecated|not found|no such|` +
		`max_?(?:completion_?|output_?)?tokens|(?:output|completion) tokens|(?:content|usage|management) polic(?:y|ies)|safety|moderation|filter\w*|flagged|prohibited|violat\w*|region|dimensions?|` +
		`unknown (?:field|parameter|role)s?|unsupported|unrecognized|not supported|invalid (?:value|type|model)|extra inputs|field required|model(?: \S+)?(?: is| does) not)\b`)
	// quotation is what the provider quotes, which may be the user's words, and what Pydantic says of a wrong value.
	quotation = regexp.MustCompile(`(?s)".*"|“.*”|\binput_value=.*|\b(?:input|string|list|value) should\b.*`)

	// statedLimit is a limit behind ">", in a range, before "maximum", or behind a word for it.
	statedLimit = regexp.MustCompile(`> ?(\d[\d,_]*\d)|\[\d+, ?(\d[\d,_]*\d)\]|\b(\d[\d,_]*\d) max(?:imum)?\b` +
		`|(?:\bmax(?:imum)?\b|\blimit\b|\bexceed(?:s|ed)?\b|\b(?:longer|larger|greater|more|less|fewer) than\b|\bat most\b|<=|\bcontext\b)([^\d.]{0,60})\b(\d[\d,_]*\d)\b`)
	amount = regexp.MustCompile(`\b\d[\d,_]*\d\b`)
	// ofBoth says that a provider counts the answer, too, or may.
	ofBoth = regexp.MustCompile(`\b(?:requested|total|output|completion)\b|max_\w*tokens|\+`)
)

// readMeaning returns what the report's words say, and reads the numbers of a prompt that is too long.
func (r *report) readMeaning() meaning {
	if !mayRefuseLength(r.status) {
		return otherwise
	}
	out := unclear
	for _, text := range slices.Concat(r.sentences, r.codes) {
		if isCode(text) {
			text = strings.ReplaceAll(text, "_", " ")
		}
		text = quotation.ReplaceAllString(strings.ToLower(text[:min(len(text), maxSentence)]), "")
		said := r.meaningOf(text)
		if said == tooLong {
			r.readSizes(text)
			return tooLong
		}
		out = max(out, said)
	}
	return out
}

// mayRefuseLength reports whether an answer with the status may say that the prompt is too long.
func mayRefuseLength(status int) bool {
	return slices.Contains([]int{0, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusBadGateway}, status)
}

// meaningOf returns the meaning of a sentence or a code.
func (r *report) meaningOf(text string) meaning {
	switch {
	case ofMinute.MatchString(text):
		return tooLong
	case r.status == http.StatusTooManyRequests:
		return otherwise
	case namesWindow.MatchString(text):
		return tooLong
	case r.status >= 500 || account.MatchString(text) || !r.isOfMessages(): // a busy server speaks of limits, too
		return otherwise
	}
	switch long, other := saysTooLong.MatchString(text), otherCause.MatchString(text); {
	case long && !other:
		return tooLong
	case other && !long:
		return otherwise
	default:
		return unclear
	}
}

// isOfMessages reports whether the member that the report is about may be the messages.
func (r *report) isOfMessages() bool {
	name, _, _ := strings.Cut(r.param, ".")
	name, _, _ = strings.Cut(name, "[")
	if _, err := strconv.Atoi(name); err == nil { // New API gives the status
		return true
	}
	return slices.Contains([]string{"", "messages", "message", "input", "inputs", "prompt", "contents", "body", "request", "model", "max_tokens"}, name)
}

// miniMaxTooLong is a code that MiniMax writes where others write the limit.
const miniMaxTooLong = 2013

// readSizes reads the limit of a sentence, and the largest number above it: what the provider counted.
func (r *report) readSizes(text string) {
	for _, found := range statedLimit.FindAllStringSubmatch(text, -1) {
		before, isSure := found[4], found[5] == ""
		n := parseNumber(found[1] + found[2] + found[3] + found[5])
		isOther := strings.HasSuffix(before, "by ") || strings.Contains(before, "output") || n == miniMaxTooLong // an excess, an answer, a code
		if n > 0 && !isOther && (r.limit == 0 || isSure) {
			r.limit = n
		}
	}
	counted := 0
	for _, number := range amount.FindAllString(text, -1) {
		counted = max(counted, parseNumber(number))
	}
	if r.limit == 0 || counted <= r.limit {
		return
	}
	r.requested, r.prompt = counted, counted
	if ofBoth.MatchString(text) {
		r.prompt = 0
	}
}

// parseNumber reads "8,192"; 0 if it cannot be a token count.
func parseNumber(s string) int {
	n, err := strconv.ParseUint(strings.NewReplacer(",", "", "_", "").Replace(s), 10, 30)
	if err != nil {
		return 0
	}
	return int(n)
}
