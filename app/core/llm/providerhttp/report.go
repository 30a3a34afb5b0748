package providerhttp

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
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
