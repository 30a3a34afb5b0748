package providerhttp

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
	"bobbin/app/core/redact"
)

// maxMessage is how much of a provider's words an error keeps, in bytes.
const maxMessage = 1_000

// Refusal returns the error that an answer reports: by its HTTP status, or (with
// status 0) by an event within a stream. Its message is the provider's own words,
// without secrets and bounded.
func (p *Peer) Refusal(status int, header http.Header, body []byte) *llm.Error {
	r := readReport(body)
	r.status = status
	if code := r.numericCode(); status == 0 && code >= 400 && code <= 599 {
		r.status = code
	}
	if wait := retryAfter(header, time.Now()); wait > 0 {
		r.retryAfter = wait
	}
	kind, unclear := r.classify()
	e := &llm.Error{
		Kind:       kind,
		Unclear:    unclear,
		Message:    r.message(),
		Provider:   p.Provider,
		Status:     r.status,
		Code:       truncateMessage(p.Scrub(r.providerCode())),
		RequestID:  truncateMessage(p.Scrub(requestID(header))),
		RetryAfter: r.retryAfter,
	}
	if kind == llm.KindContextLength {
		e.Limit, e.Requested, e.Prompt = r.limit, r.requested, r.prompt
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("status %d %s", r.status, http.StatusText(r.status)))
	}
	e.Message = truncateMessage(redact.Text(p.Scrub(e.Message)))
	return e
}

// Present reports whether there is anything in the JSON.
func Present(raw json.RawMessage) bool {
	text := bytes.TrimSpace(raw)
	return len(text) > 0 && string(text) != "null" && string(text) != "{}" && string(text) != `""`
}

// IgnoreType ignores a member of the wrong type: the member stays empty and the rest
// is read.
func IgnoreType(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return nil
	}
	return err
}

// truncateMessage returns at most maxMessage bytes of a text, as valid UTF-8.
func truncateMessage(s string) string {
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
		return boundDuration(ms / 1_000)
	}
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return boundDuration(seconds)
	}
	if at, err := http.ParseTime(value); err == nil {
		return boundDuration(at.Sub(now).Seconds())
	}
	return 0
}

func boundDuration(seconds float64) time.Duration {
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
