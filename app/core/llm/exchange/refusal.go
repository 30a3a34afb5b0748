package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bobbin/app/core/llm"
)

// maxMessage is how much of a provider's words an error keeps, in bytes.
const maxMessage = 1_000

// report is what a provider says of a failure, from any of the forms in use.
type report struct {
	status  int    // HTTP status; 0 = within a stream
	message string // a sentence
	// words are the provider's codes, types and reasons, the most special first.
	words      []string
	limit      int // tokens; 0 = not told
	requested  int
	prompt     int
	retryAfter time.Duration
}

// Refusal returns the error that an answer reports: by its HTTP status, or (with
// status 0) by an event within a stream.
func (p *Peer) Refusal(status int, header http.Header, body []byte) *llm.Error {
	r := parseReport(body)
	r.status = status
	if code := r.numericCode(); status == 0 && code >= 400 && code <= 599 {
		r.status = code
	}
	if wait := retryAfter(header, time.Now()); wait > 0 {
		r.retryAfter = wait
	}
	e := &llm.Error{
		Kind:       r.kind(),
		Message:    r.message,
		Provider:   p.Provider,
		Status:     r.status,
		Code:       shorten(p.Scrub(r.code())),
		RequestID:  shorten(p.Scrub(requestID(header))),
		RetryAfter: r.retryAfter,
	}
	if e.Kind == llm.KindContextLength {
		e.Limit, e.Requested, e.Prompt = r.limit, r.requested, r.prompt
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("status %d %s", r.status, http.StatusText(r.status)))
	}
	e.Message = shorten(p.Scrub(e.Message))
	return e
}

// code returns the provider's own code.
func (r report) code() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

// numericCode returns the code if it is a number, as OpenRouter and vLLM give
// the status again.
func (r report) numericCode() int {
	for _, w := range r.words {
		if n, err := strconv.Atoi(w); err == nil {
			return n
		}
	}
	return 0
}

// reported are the members in which providers report an error; not all are ever
// there at once.
type reported struct {
	Error        json.RawMessage `json:"error"`
	Message      json.RawMessage `json:"message"`
	Detail       json.RawMessage `json:"detail"` // FastAPI
	Code         json.RawMessage `json:"code"`
	Type         json.RawMessage `json:"type"`
	Status       json.RawMessage `json:"status"` // Google: INVALID_ARGUMENT …
	Details      []detail        `json:"details"`
	Metadata     *metadata       `json:"metadata"`        // OpenRouter
	PromptTokens int             `json:"n_prompt_tokens"` // llama.cpp
	Context      int             `json:"n_ctx"`
}

// detail is one of Google's details.
type detail struct {
	Reason     string `json:"reason"`
	RetryDelay string `json:"retryDelay"` // "34s"
}

// metadata is what OpenRouter adds: what the real provider said.
type metadata struct {
	Raw     json.RawMessage `json:"raw"`
	Reasons json.RawMessage `json:"reasons"` // of a moderation
}

// parseReport reads a report in any known form; of an unknown one the text is
// the message.
func parseReport(body []byte) report {
	body = bytes.TrimSpace(body)
	if list := Elements(body); len(list) > 0 {
		body = list[0] // Gemini
	}
	if len(body) == 0 || body[0] != '{' {
		return report{message: plain(body)}
	}
	var outer reported
	if err := IgnoreType(json.Unmarshal(body, &outer)); err != nil {
		return report{message: plain(body)}
	}
	r := outer.report()
	if inner := bytes.TrimSpace(outer.Error); len(inner) > 0 && inner[0] == '{' {
		var e reported
		if IgnoreType(json.Unmarshal(inner, &e)) == nil {
			r = e.report()
		}
	} else if text := text(outer.Error); text != "" {
		if r.message != "" {
			r.words = append(r.words, text) // {"error": "code", "message": "sentence"}
		} else {
			r.message = text // {"error": "sentence"}
		}
	}
	return r
}

// report puts one object's members together.
func (o reported) report() report {
	r := report{message: text(o.Message), limit: max(o.Context, 0), requested: max(o.PromptTokens, 0), prompt: max(o.PromptTokens, 0)}
	if r.message == "" {
		r.message = text(o.Detail)
	}
	for _, d := range o.Details {
		if d.Reason != "" {
			r.words = append(r.words, d.Reason)
		}
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			r.retryAfter = wait
		}
	}
	for _, word := range []json.RawMessage{o.Code, o.Status, o.Type} {
		if w := text(word); w != "" {
			r.words = append(r.words, w)
		}
	}
	if o.Metadata == nil {
		return r
	}
	if Present(o.Metadata.Reasons) {
		r.words = append([]string{"moderation"}, r.words...)
	}
	if raw := text(o.Metadata.Raw); raw != "" {
		r.addUpstream(raw)
	}
	return r
}

// addUpstream adds what the provider behind OpenRouter said, which is more than
// "Provider returned error".
func (r *report) addUpstream(raw string) {
	var upstream reported
	if json.Unmarshal([]byte(raw), &struct {
		Error *reported `json:"error"`
	}{&upstream}) != nil {
		return
	}
	upstream.Metadata = nil // one level is enough
	u := upstream.report()
	if u.message == "" {
		return
	}
	r.message = u.message
	r.words = append(u.words, r.words...)
	r.limit, r.requested, r.prompt = u.limit, u.requested, u.prompt
}

// Elements returns the elements of a JSON array; nil if it is none.
func Elements(raw json.RawMessage) []json.RawMessage {
	var out []json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// Present reports whether there is anything in the JSON.
func Present(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && string(text) != "null" && string(text) != "{}" && string(text) != `""`
}

// IgnoreType lets a member of the wrong type pass: it is left empty and the rest
// is read.
func IgnoreType(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil
	}
	return err
}

// text returns a JSON string's text, and other JSON as it is written; "" for
// null and nothing.
func text(raw json.RawMessage) string {
	if !Present(raw) {
		return ""
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// plain returns a body that is no JSON as a message; of a web page nothing.
func plain(body []byte) string {
	if len(body) > 0 && body[0] == '<' {
		return ""
	}
	return string(body)
}

// shorten cuts a text to maxMessage, at the border of a character, and makes it
// valid UTF-8.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// maxRetryAfter bounds what is believed of a Retry-After.
const maxRetryAfter = 24 * time.Hour

// retryAfter reads how long a provider asks to wait: in milliseconds, in seconds,
// or until a date.
func retryAfter(header http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms / 1_000)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return bounded(seconds)
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at.Sub(now).Seconds())
	}
	return 0
}

func bounded(seconds float64) time.Duration {
	if !(seconds > 0) { // not a number, too
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
}

// requestID returns the provider's id of the request, for its support.
func requestID(header http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Generation-Id", "Cf-Ray"} {
		if id := header.Get(name); id != "" {
			return id
		}
	}
	return ""
}
