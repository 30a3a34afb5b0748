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

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
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
		Provider: "p", BaseURL: "http://u:hush@provider.test/v1", Key: "hush", Timeouts: providerhttp.Timeouts{Headers: providerhttp.DefaultHeadersTimeout, Idle: providerhttp.DefaultIdleTimeout}, Client: providerhttp.NewClient(t),
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
