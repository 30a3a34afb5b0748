package providerhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
)

// transport is a function as a transport.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answers is a transport that answers with the status and the body.
func answers(status int, body string) transport {
	return func(r *http.Request) (*http.Response, error) {
		return &http.Response{Request: r, StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func peer(t transport) *providerhttp.Peer {
	return &providerhttp.Peer{
		Provider: "p", BaseURL: "http://u:hush@provider.test/v1", Key: "hush", Timeouts: providerhttp.Timeouts{}.WithDefaults(), Client: providerhttp.NewClient(t),
	}
}

func get(ctx context.Context) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, "http://provider.test/", http.NoBody)
}

func TestDo(t *testing.T) {
	t.Parallel()
	read := func(err error) func(*http.Response, io.Reader) error {
		return func(_ *http.Response, body io.Reader) error {
			_, _ = io.ReadAll(body)
			return err
		}
	}
	for name, c := range map[string]struct {
		peer  *providerhttp.Peer
		build func(context.Context) (*http.Request, error)
		read  func(*http.Response, io.Reader) error
		kind  llm.ErrorKind // empty = no error
		says  string
	}{
		"fine":              {peer(answers(200, "x")), get, read(nil), "", ""},
		"the caller left":   {peer(answers(200, "x")), get, read(fmt.Errorf("so: %w", providerhttp.ErrLeft)), "", ""},
		"broken off":        {peer(answers(200, "x")), get, read(providerhttp.ErrTruncated), llm.KindTruncated, "the answer broke off"},
		"no request":        {peer(answers(200, "x")), func(context.Context) (*http.Request, error) { return nil, errors.New("no paper") }, read(nil), llm.KindInvalid, "no paper"},
		"refused":           {peer(answers(500, "no hush")), get, read(nil), llm.KindOverloaded, "no ***"},
		"a typed error":     {peer(answers(200, "x")), get, read(&llm.Error{Kind: llm.KindEmpty, Message: "typed"}), llm.KindEmpty, "typed"},
		"nobody is reached": {peer(func(*http.Request) (*http.Response, error) { return nil, errors.New("no hush") }), get, read(nil), llm.KindNetwork, "http://provider.test/v1 was not reached: no ***"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.peer.Do(t.Context(), c.build, c.read)
			if c.kind == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if err == nil || err.Kind != c.kind || !strings.Contains(err.Message, c.says) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want %s that says %q", err, c.kind, c.says)
			}
		})
	}
}

// A reader that takes its time is not taken for a provider that is silent.
func TestTheCallersTimeIsNotTheProviders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		err := peer(answers(200, "abc")).Do(t.Context(), get, func(r *http.Response, body io.Reader) error {
			if _, err := body.Read(make([]byte, 1)); err != nil {
				return err
			}
			time.Sleep(10 * providerhttp.DefaultIdleTimeout)
			return r.Request.Context().Err()
		})
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

func TestReader(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"":                          providerhttp.ErrTruncated.Error(),
		" \r\n ":                    providerhttp.ErrTruncated.Error(),
		"\xEF\xBB\xBF {\"a\":1}":    `whole {"a":1}`,
		"[1]":                       "whole [1]",
		"<html>":                    "page",
		"event: x\ndata: 1\n\n":     "event x 1",
		": comment\ndata: [DONE]\n": "event  [DONE]",
	} {
		got := ""
		err := providerhttp.Reader{
			Whole: func(text []byte) error { got = "whole " + string(text); return nil },
			Page:  func() error { got = "page"; return nil },
			Stream: func(events *providerhttp.Events) error {
				e, err := events.Next()
				got = "event " + e.Name + " " + string(e.Data)
				return err
			},
		}.Read(strings.NewReader(body))
		if err != nil {
			got = err.Error()
		}
		compare.Equal(t, fmt.Sprintf("%q", body), want, got)
	}
}

func TestAnswersHaveBounds(t *testing.T) {
	t.Parallel()
	var size *providerhttp.SizeError
	endless := func(text string) io.Reader { return io.MultiReader(strings.NewReader(text), repeat(text[len(text)-1])) }
	read := func(r io.Reader) error {
		return providerhttp.Reader{
			Whole: func([]byte) error { return nil },
			Stream: func(events *providerhttp.Events) error {
				for {
					if _, err := events.Next(); err != nil {
						return err
					}
				}
			},
		}.Read(r)
	}
	for name, r := range map[string]io.Reader{"a line": endless("data: x"), "blanks": endless(" "), "one value": endless("{x")} {
		if err := read(r); !errors.As(err, &size) {
			t.Errorf("%s without an end: got %v, want a SizeError", name, err)
		}
	}
}

// repeat is a reader of one byte without an end.
type repeat byte

func (b repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for base, fine := range map[string]bool{"": false, "localhost:80": false, "ftp://x": false, "http://": false, "http://x/v1": true, "https://x": true} {
		if err := providerhttp.CheckURL("m", base); (err == nil) != fine || err != nil && !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%q: got %v, want fine %v", base, err, fine)
		}
	}
	compare.Equal(t, `providerhttp.Redacted("http://u:p@h/x?key=k")`, "http://h/x", providerhttp.Redacted("http://u:p@h/x?key=k"))
	compare.Equal(t, `providerhttp.Redacted("://")`, "?", providerhttp.Redacted("://"))
}
