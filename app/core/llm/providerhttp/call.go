// Package providerhttp sends requests to providers of models, the same way for every
// adapter: with time limits, typed errors, Retry-After, bounded answers, and without keys in
// errors.
//
// An adapter passes a function that builds the request and one that reads the answer as it
// arrives. Both run on the caller's goroutine. When Do returns, the request has ended.
package providerhttp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"bobbin/app/core/llm"
)

// Stream yields what call emits, and then its error, unless the caller has left the loop: emit then
// returns false.
func Stream(call func(emit func(llm.Delta) bool) *llm.Error) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		hasLeft := false
		err := call(func(d llm.Delta) bool {
			hasLeft = hasLeft || !yield(d, nil)
			return !hasLeft
		})
		if err != nil && !hasLeft {
			yield(llm.Delta{}, err)
		}
	}
}

// Post sends the body, which is JSON, to the path behind the base URL and calls read for an answer
// with a 2xx status, with what makes errors that the answer reports. Prepare completes the header;
// nil = with the key as a bearer token. Its result is that of Do.
func (p *Peer) Post(ctx context.Context, path string, body []byte, prepare func(http.Header),
	read func(body io.Reader, refusal func(reported []byte) *llm.Error) error,
) *llm.Error {
	if ctx.Err() != nil {
		return llm.CanceledError(ctx, p.Provider)
	}
	return p.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.BaseURL+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"bobbin"}}
		if prepare != nil {
			prepare(request.Header)
		} else if p.Key != "" {
			request.Header.Set("Authorization", "Bearer "+p.Key)
		}
		return request, nil
	}, func(response *http.Response, body io.Reader) error {
		return read(body, func(reported []byte) *llm.Error { return p.Refusal(0, response.Header, reported) })
	})
}

// Answer is what the readers of answers share.
type Answer struct {
	Emit    func(llm.Delta) bool // false = no more
	Refusal func(reported []byte) *llm.Error

	ids  map[string]bool // of the tool calls so far
	held llm.Delta       // text and reasoning that came together, not emitted yet
}

// EmitDelta emits a delta that is not empty; ErrLeft = no more. Pieces of text that came together become one.
func (a *Answer) EmitDelta(d llm.Delta) error {
	if d == (llm.Delta{Text: d.Text, Reasoning: d.Reasoning}) && (d.Reasoning == "" || a.held.Text == "") {
		a.held.Text, a.held.Reasoning = a.held.Text+d.Text, a.held.Reasoning+d.Reasoning
		return nil
	}
	if err := a.emitHeld(); err != nil || a.Emit(d) {
		return err
	}
	return ErrLeft
}

func (a *Answer) emitHeld() error {
	held := a.held
	if a.held = (llm.Delta{}); held == (llm.Delta{}) || a.Emit(held) {
		return nil
	}
	return ErrLeft
}

// Read reads an answer to its end: whole reads one that is not streamed, and event the data of one
// server-sent event. A stream that stops before hasEnded was cut off.
func (a *Answer) Read(body io.Reader, whole, event func(data []byte) error, hasEnded func() bool) (err error) {
	defer func() {
		if left := a.emitHeld(); left != nil {
			err = left
		}
	}()
	r := bufio.NewReaderSize(body, 4<<10)
	first, err := firstByte(r)
	switch {
	case err != nil:
		return err
	case first == '<':
		return a.Refusal([]byte(WebPage))
	case first == '{' || first == '[':
		text, err := readWhole(r)
		if err != nil {
			return err
		}
		return whole(text)
	}
	events, halves := &Events{lines: r, beforeWait: a.emitHeld}, map[string][]byte{}
	for !hasEnded() {
		e, err := events.Next()
		data := bytes.TrimSpace(e.Data)
		switch {
		case errors.Is(err, io.EOF):
			return ErrTruncated
		case err != nil:
			return err
		case e.Name == "error":
			return a.Refusal(data)
		case len(data) == 0 || data[0] != '{' && data[0] != '[': // a keep-alive
			continue
		}
		if err := event(joinCharacters(data, halves)); err != nil {
			return err
		}
	}
	return nil
}

// Decode reads an event. Members of another type than theirs stay empty.
func Decode(data []byte, event any) error {
	if IgnoreType(json.Unmarshal(data, event)) != nil {
		return fmt.Errorf("%w in the middle of an event", ErrTruncated)
	}
	return nil
}

// UniqueCallID returns the id of a call: the provider's, or one of ours where that is missing or
// another call's, so that its result can name it.
func (a *Answer) UniqueCallID(given string) string {
	if given == "" || a.ids[given] {
		given = llm.NewCallID()
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.ids[given] = true
	return given
}

// Transformations are what a provider reports to have changed in the prompt (input_transformations of
// Anthropic and OpenAI).
type Transformations []struct {
	Type   string `json:"type"`
	Action string `json:"action"`
	Reason string `json:"reason"`
}

// ToCore returns the thoughts that were left out; nil = none.
func (t Transformations) ToCore() *llm.DroppedThoughts {
	reasons := map[llm.DropReason]int{}
	for _, change := range t {
		if change.Type != "thinking_dropped" && (change.Type != "reasoning" || change.Action != "removed") {
			continue
		}
		switch reason := llm.DropReason(strings.TrimSuffix(strings.TrimSuffix(change.Reason, "_mismatch"), "_binding")); reason {
		case llm.DropPrefix, llm.DropModel, llm.DropOrganization, llm.DropEndUser:
			reasons[reason]++
		default:
			reasons[llm.DropOther]++
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: reasons}
}

// WebPage is the error message for an answer that is a web page.
const WebPage = "a web page came instead of an answer: is the base_url right?"

// firstByte returns the first byte that is not blank, without taking it.
func firstByte(r *bufio.Reader) (byte, error) {
	for range MaxLine {
		b, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return 0, ErrTruncated
		}
		if err != nil {
			return 0, err
		}
		// Blank, or of a byte order mark.
		if strings.IndexByte(" \t\r\n\xEF\xBB\xBF", b) < 0 {
			return b, r.UnreadByte()
		}
	}
	return 0, &SizeError{"the blank beginning of the answer", MaxLine}
}

// readWhole reads the answer of a server that did not stream.
func readWhole(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxAnswer {
		return nil, &SizeError{"the answer", MaxAnswer}
	}
	return text, nil
}

// highSurrogate is the first half of a surrogate pair at the end of a text, as JSON escapes it.
var highSurrogate = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})$`)

// joinCharacters returns the data of an event in which no text ends in the middle of a character. Gateways cut
// between bytes, or between the halves of a surrogate pair: the first half comes with the next text of the same member
// and index. Halves has those that are kept.
func joinCharacters(data []byte, halves map[string][]byte) []byte {
	if len(halves) == 0 && utf8.Valid(data) && !bytes.Contains(data, []byte(`\ud`)) && !bytes.Contains(data, []byte(`\uD`)) {
		return data
	}
	texts, index, key := bytes.Split(data, []byte(`"`)), "", ""
	for i := 1; i < len(texts)-1; i++ {
		switch before := string(bytes.TrimSpace(texts[i-1])); {
		case strings.HasSuffix(before, "index"):
			index = string(texts[i])
		case before == ":" && i > 1: // between the name of a member and its text
			key = index + string(texts[i-2])
			texts[i] = slices.Concat(halves[key], texts[i])
			delete(halves, key)
		}
		text := texts[i]
		texts[i] = bytes.TrimRightFunc(text, func(r rune) bool { return r == utf8.RuneError }) // bytes of a character
		if at := highSurrogate.FindSubmatchIndex(text); at != nil {
			texts[i] = text[:at[2]]
		}
		if whole := len(texts[i]); whole < len(text) {
			halves[key] = slices.Clone(text[whole:])
		}
	}
	return bytes.Join(texts, []byte(`"`))
}
