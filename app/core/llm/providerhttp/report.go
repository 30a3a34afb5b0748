package providerhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/redact"
)

// report is a provider's description of a failure, read from any of the forms in use.
type report struct {
	status     int      // HTTP status; 0 = within a stream
	sentences  []string // all texts except codes and quoted requests; the first is the message to show
	codes      []string // codes, types and reasons, the most special first
	param      string   // the member of the request that the report is about; empty = not reported
	limit      int      // tokens; 0 = not reported
	requested  int
	prompt     int
	retryAfter time.Duration
}

// Bounds of what is read of a report.
const (
	maxNesting   = 16    // objects and quoted objects within each other
	maxElements  = 8     // of a list
	maxSentences = 16    // of a report
	maxSentence  = 2_000 // bytes of one that are looked at
	maxCode      = 100   // bytes of a code
)

// page is how a web page begins; DashScope's sentences begin with "<400>".
var page = regexp.MustCompile(`^<[a-zA-Z!?/]`)

// read reads a text, an error object or a list of them.
func (r *report) read(v any, depth int) {
	if depth <= 0 {
		return
	}
	switch v := v.(type) {
	case string:
		r.readText(strings.TrimSpace(v), depth-1)
	case []any:
		for _, element := range v[:min(len(v), maxElements)] {
			r.read(element, depth-1)
		}
	case map[string]any:
		r.readObject(v, depth-1)
	}
}

// readText reads a text that is a sentence, or that has an error object or a list of them in it.
func (r *report) readText(text string, depth int) {
	if text == "" || page.MatchString(text) || len(r.sentences) >= maxSentences {
		return
	}
	if begin, before := strings.IndexAny(text, "{["), len(r.sentences); begin >= 0 {
		decoder := json.NewDecoder(strings.NewReader(text[begin:]))
		decoder.UseNumber()
		var v any
		err := decoder.Decode(&v)
		isObject := func(v any) bool { _, ok := v.(map[string]any); return ok }
		list, isList := v.([]any)
		if err == nil && (!isList || slices.ContainsFunc(list, isObject)) { // else a range of numbers, such as [1, 8192]
			r.read(v, depth)
			if begin == 0 || len(r.sentences) > before {
				return
			}
		}
	}
	r.sentences = append(r.sentences, text)
}

// readObject reads an error object. A message of the request is not one.
func (r *report) readObject(object map[string]any, depth int) {
	members := make(map[string]any, len(object))
	for name, v := range object {
		members[strings.ToLower(name)] = v
	}
	if members["role"] != nil {
		return
	}
	// The members that hold sentences or other error objects, in the order in which they are the message: first the
	// report of the provider behind a gateway, which is more than "Provider returned error".
	for _, name := range strings.Fields("metadata raw error message msg detail errors error_message errormessage error_msg err_msg status_msg error_description " +
		"description faultstring fault details fieldviolations response body cause innererror inner_error exception base_resp data") {
		if word, ok := members[name].(string); ok && name == "error" && isCode(word) { // {"error": "code", "message": "sentence"}
			r.addCode(word)
			continue
		}
		r.read(members[name], depth)
	}
	if reasons, ok := members["reasons"].([]any); ok && len(reasons) > 0 { // OpenRouter's
		r.addCode("moderation")
	}
	for _, name := range strings.Fields("reason code error_code errcode status_code status type __type") {
		r.addCode(members[name])
	}
	if param, ok := members["param"].(string); ok && r.param == "" {
		r.param = param
	}
	if n, ok := members["n_ctx"].(json.Number); ok { // llama.cpp
		r.limit, r.prompt = parseNumber(n.String()), parseNumber(fmt.Sprint(members["n_prompt_tokens"]))
		r.requested = r.prompt
	}
	delay, _ := members["retrydelay"].(string)
	if wait, err := time.ParseDuration(delay); err == nil && wait > 0 { // Google: "34s"
		r.retryAfter = wait
	}
}

// addCode adds a code, a word or a number.
func (r *report) addCode(v any) {
	if n, ok := v.(json.Number); ok {
		v = n.String()
	}
	code, _ := v.(string)
	if code = strings.TrimSpace(code); code != "" && isCode(code) && len(r.codes) < maxSentences && !slices.Contains(r.codes, code) {
		r.codes = append(r.codes, code)
	}
}

// isCode reports whether the text is a code and no sentence.
func isCode(text string) bool { return len(text) <= maxCode && !strings.ContainsAny(text, " \t\n") }

// providerCode returns the provider's own code; empty = there is none.
func (r *report) providerCode() string { return append(r.codes, "")[0] }

// numericCode returns the code that is a number, as OpenRouter and vLLM give the status again; 0 = none is.
func (r *report) numericCode() int {
	for _, code := range r.codes {
		if n, err := strconv.Atoi(code); err == nil {
			return n
		}
	}
	return 0
}

// message returns the sentence to show; empty = there is none.
func (r *report) message() string {
	if len(r.sentences) == 0 && r.numericCode() == 0 {
		return r.providerCode()
	}
	return append(r.sentences, "")[0]
}

// maxMessage is how much of a provider's words an error keeps, in bytes.
const maxMessage = 1_000

// Refusal returns the error that an answer reports: by its HTTP status, or (with
// status 0) by an event within a stream. Its message is the provider's own words,
// without secrets and bounded.
func (p *Peer) Refusal(status int, header http.Header, body []byte) *llm.Error {
	// The report is an object, however it is nested and quoted as a text, or a text; no web page.
	var r report
	r.read(string(bytes.TrimPrefix(bytes.TrimSpace(body[:min(len(body), maxErrorBody)]), []byte("\uFEFF"))), maxNesting)
	r.status = status
	if code := r.numericCode(); status == 0 && code >= 400 && code <= 599 {
		r.status = code
	}
	if wait := retryAfter(header, time.Now()); wait > 0 {
		r.retryAfter = wait
	}
	kind, unclear := r.classify()
	e := &llm.Error{
		Kind: kind, Unclear: unclear, Message: r.message(), Provider: p.Provider,
		Status: r.status, Code: truncateMessage(p.Scrub(r.providerCode())), RetryAfter: r.retryAfter,
	}
	if kind == llm.KindContextLength {
		e.Limit, e.Requested, e.Prompt = r.limit, r.requested, r.prompt
	}
	if location := header.Get("Location"); location != "" && status < 400 {
		e.Message = "it redirects to " + llm.Redacted(location)
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("status %d %s", r.status, http.StatusText(r.status)))
	}
	e.Message = truncateMessage(redact.Text(p.Scrub(e.Message)))
	return e
}

// Present reports whether there is anything in the JSON.
func Present(raw json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "{}", `""`}, string(bytes.TrimSpace(raw)))
}

// IgnoreType ignores a member of the wrong type: the member stays empty and the rest
// is read.
func IgnoreType(err error) error {
	if _, isType := errors.AsType[*json.UnmarshalTypeError](err); isType {
		return nil
	}
	return err
}

// truncateMessage returns at most maxMessage bytes of a text, as valid UTF-8.
func truncateMessage(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if cut := core.Clip(s, maxMessage); cut != s {
		return cut + "…"
	}
	return s
}

// maxRetryAfter bounds what is believed of a Retry-After.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long a provider asks to wait: in milliseconds, in seconds,
// or until a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	seconds, err := strconv.ParseFloat(value, 64)
	if ms, failure := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); failure == nil {
		seconds = ms / 1_000
	} else if at, failure := http.ParseTime(value); err != nil && failure == nil {
		seconds = at.Sub(now).Seconds()
	}
	if !(seconds > 0) { // not a number, too
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}
