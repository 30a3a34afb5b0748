package providerhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/redact"
)

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
		Kind:       kind,
		Unclear:    unclear,
		Message:    r.message(),
		Provider:   p.Provider,
		Status:     r.status,
		Code:       truncateMessage(p.Scrub(r.providerCode())),
		RetryAfter: r.retryAfter,
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
