package providerhttp

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report is a provider's description of a failure, read from any of the forms in use.
type report struct {
	status  int    // HTTP status; 0 = within a stream
	message string // the sentence to show
	// sentences are all texts except codes and quoted requests.
	sentences []string
	// words are the provider's codes, types and reasons, the most special first.
	words      []string
	param      string // the member of the request that the report is about; empty = not reported
	limit      int    // tokens; 0 = not reported
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
	maxWord      = 100   // bytes of a code
)

// readReport reads a report in any form: an object, however it is nested and
// however often it was quoted as a text, or a text. Of a web page nothing is read.
func readReport(body []byte) report {
	var r report
	r.readText(string(bytes.TrimSpace(bytes.TrimPrefix(body[:min(len(body), maxErrorBody)], []byte("\uFEFF")))), maxNesting)
	return r
}

// providerCode returns the provider's own code.
func (r *report) providerCode() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

// numericCode returns the code if it is a number, as OpenRouter and vLLM give
// the status again.
func (r *report) numericCode() int {
	for _, w := range r.words {
		if n, err := strconv.Atoi(w); err == nil {
			return n
		}
	}
	return 0
}

// readText reads a text that is a sentence, or that has an error object in it.
func (r *report) readText(text string, depth int) {
	text = strings.TrimSpace(text)
	if text == "" || page.MatchString(text) || depth <= 0 {
		return
	}
	begin := strings.IndexAny(text, "{[")
	if begin < 0 {
		r.addSentence(text, text)
		return
	}
	before := len(r.sentences)
	end, ok := r.readQuoted(text[begin:], depth-1)
	if !ok {
		end, ok = r.readMembers(text[begin:], depth-1)
	}
	around := strings.TrimSpace(text[:begin] + " " + text[begin+end:])
	switch {
	case !ok:
		r.addSentence(text, text)
	case len(r.sentences) > before || around == "":
		r.addSentence(around, around)
	default:
		r.addSentence(text, around) // the object may be the user's own
	}
}

// readQuoted reads the JSON object or the list of objects that the text begins with.
// It returns where that ends, and false if there is none.
func (r *report) readQuoted(text string, depth int) (end int, ok bool) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return 0, false
	}
	if list, ok := v.([]any); ok && !slices.ContainsFunc(list, isObject) {
		return 0, false // a range of numbers, such as [1, 8192]
	}
	r.readValue(v, depth)
	return int(decoder.InputOffset()), true
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// addSentence adds a text; the first text is the message to show, and the sentence is
// what of it are the provider's own words.
func (r *report) addSentence(text, sentence string) {
	if r.message == "" {
		r.message = text
	}
	if sentence != "" && len(r.sentences) < maxSentences {
		r.sentences = append(r.sentences, sentence[:min(len(sentence), maxSentence)])
	}
}

// The members of error objects that hold sentences or other error objects, in the
// order in which they are the message. Names are compared in lower case.
func nestedMembers() []string {
	return []string{
		"error", "message", "msg", "detail", "errors", "error_message", "errormessage", "error_msg", "err_msg", "status_msg",
		"error_description", "description", "faultstring", "fault", "details", "fieldviolations", "response", "body", "cause",
		"innererror", "inner_error", "exception", "base_resp", "data",
	}
}

// readValue reads a JSON value.
func (r *report) readValue(v any, depth int) {
	if depth <= 0 {
		return
	}
	switch v := v.(type) {
	case string:
		r.readText(v, depth)
	case []any:
		for _, element := range v[:min(len(v), maxElements)] {
			r.readValue(element, depth-1)
		}
	case map[string]any:
		r.readObject(v, depth)
	}
}

// readObject reads an error object. A quoted request is not one.
func (r *report) readObject(object map[string]any, depth int) {
	members := make(map[string]any, len(object))
	for name, v := range object {
		members[strings.ToLower(name)] = v
	}
	if isRequest(members) {
		return
	}
	r.readUpstream(members, depth-1)
	var code string // {"error": "code", "message": "sentence"}
	for _, name := range nestedMembers() {
		v := members[name]
		if word, ok := v.(string); ok && name == "error" && isWord(word) {
			code = word
			continue
		}
		r.readValue(v, depth-1)
	}
	for _, name := range []string{"reason", "code", "error_code", "errcode", "status_code", "status", "type", "__type"} {
		r.addWord(members[name])
	}
	if code != "" && len(r.sentences) == 0 {
		r.addSentence(code, code)
	} else {
		r.addWord(code)
	}
	r.readNumbers(members)
}

// readUpstream reads the report of the provider behind a gateway, which is more than
// "Provider returned error".
func (r *report) readUpstream(members map[string]any, depth int) {
	metadata, ok := members["metadata"].(map[string]any)
	if ok {
		if reasons, ok := metadata["reasons"].([]any); ok && len(reasons) > 0 { // of a moderation
			r.words = append(r.words, "moderation")
		}
		r.readValue(metadata["raw"], depth)
	}
	r.readValue(members["raw"], depth)
}

// readNumbers reads the members that are neither sentences nor codes.
func (r *report) readNumbers(members map[string]any) {
	if n := parseCount(members["n_ctx"]); n > 0 { // llama.cpp
		r.limit = n
	}
	if n := parseCount(members["n_prompt_tokens"]); n > 0 {
		r.prompt, r.requested = n, n
	}
	if delay, ok := members["retrydelay"].(string); ok { // Google: "34s"
		if wait, err := time.ParseDuration(delay); err == nil && wait > 0 {
			r.retryAfter = wait
		}
	}
	for _, name := range []string{"param", "field"} {
		if param, ok := members[name].(string); ok && r.param == "" {
			r.param = param
		}
	}
	if place, ok := members["loc"].([]any); ok && r.param == "" { // FastAPI: ["body", "messages", 3]
		var path []string
		for _, part := range place[:min(len(place), maxElements)] {
			if name, ok := part.(string); ok && name != "body" {
				path = append(path, name)
			}
		}
		r.param = strings.Join(path, ".")
	}
}

// parseCount returns a JSON number that may be a token count; 0 = it is not.
func parseCount(v any) int {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	return parseNumber(n.String())
}

// addWord adds a code.
func (r *report) addWord(v any) {
	var word string
	switch v := v.(type) {
	case string:
		word = strings.TrimSpace(v)
	case json.Number:
		word = v.String()
	}
	if word == "" || word == "null" || word == "None" || !isWord(word) || slices.Contains(r.words, word) || len(r.words) >= maxSentences {
		return
	}
	r.words = append(r.words, word)
}

// isWord reports whether the text is a code and no sentence.
func isWord(text string) bool {
	return len(text) <= maxWord && !strings.ContainsAny(text, " \t\n")
}

// isRequest reports whether an object with these members is a request or a message
// of one: what is in it is the user's. Cloudflare's errors have empty messages.
func isRequest(members map[string]any) bool {
	hasObjects := func(name string) bool {
		list, ok := members[name].([]any)
		return ok && slices.ContainsFunc(list, isObject)
	}
	return members["role"] != nil || hasObjects("messages") || hasObjects("contents")
}

var (
	// member is a member of an object that is no JSON: one as Python prints it, or one
	// that was cut off. The groups: name; value in double, in single quotes; number.
	member = regexp.MustCompile(`(?:^|[{,\[(\s])['"](\w{2,24})['"]\s*:\s*(?:"((?:[^"\\]|\\.)*)(?:"|$)|'((?:[^'\\]|\\.)*)(?:'|$)|(\d{1,12}))`)
	// page is how a web page begins; DashScope's sentences begin with "<400>".
	page = regexp.MustCompile(`^<[a-zA-Z!?/]`)
	// escaped is a character that was quoted.
	escaped = regexp.MustCompile(`\\(.)`)
)

// readMembers reads the members of an object that is no JSON. It returns where the
// object ends, and false if there is none.
func (r *report) readMembers(text string, depth int) (end int, ok bool) {
	found := member.FindAllStringSubmatch(text, maxSentences)
	if len(found) == 0 {
		return 0, false
	}
	if slices.ContainsFunc(found, func(m []string) bool { return strings.EqualFold(m[1], "role") }) {
		return len(text), true // a message of a request
	}
	for _, m := range found {
		name, value := strings.ToLower(m[1]), m[2]+m[3]
		switch {
		case name == "code" || name == "type" || name == "status":
			r.addWord(value + m[4])
		case name == "param" && r.param == "":
			r.param = value
		case name == "raw" || slices.Contains(nestedMembers(), name):
			r.readText(removeQuoting(value), depth)
		}
	}
	return len(text), true
}

// removeQuoting takes one level of quoting away.
func removeQuoting(text string) string {
	var plain string
	if json.Unmarshal([]byte(`"`+text+`"`), &plain) == nil {
		return plain
	}
	return escaped.ReplaceAllStringFunc(text, func(pair string) string {
		switch pair[1] {
		case 'n', 'r', 't':
			return " "
		default:
			return pair[1:]
		}
	})
}
