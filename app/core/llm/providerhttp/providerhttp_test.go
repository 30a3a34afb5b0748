package providerhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

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
				compare.True(t, err == nil, "got %v, want no error", err)
				return
			}
			compare.True(t, err != nil && err.Kind == c.kind && strings.Contains(err.Message, c.says) && !strings.Contains(err.Error(), "hush"), "got %v, want %s that says %q", err, c.kind, c.says)
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
		compare.True(t, err == nil, "got %v, want no error", err)
	})
}

// What a provider answers may be shown, stored and logged: it is cleaned and bounded.
func TestRefusalsAreCleaned(t *testing.T) {
	t.Parallel()
	p := &providerhttp.Peer{Provider: "p", Key: "hush"}
	e := p.Refusal(400, nil, []byte(`{"error":{"message":"no: hush, sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH, \u001b]52;c;eA==\u0007 \u202eok\nnext"}}`))
	compare.Equal(t, "the words: want no secrets and no control characters", "no: ***, [redacted: api key], ]52;c;eA== ok next", e.Words())
	e = p.Refusal(400, nil, []byte(strings.Repeat("ä ", 10_000)))
	words := e.Words()
	compare.True(t, len(words) <= 410 && utf8.ValidString(words), "got %d bytes, want about 400", len(words))
	for _, status := range []int{401, 429, 500} {
		compare.Equal(t, fmt.Sprintf("%d: words of the operator's business", status), "", p.Refusal(status, nil, []byte("internal.host:8080 said no")).Words())
	}
}

// Hostile answers are read in bounds.
func TestRefusalsHaveBounds(t *testing.T) {
	t.Parallel()
	p := &providerhttp.Peer{Provider: "p"}
	for name, body := range map[string]string{
		"deep":        strings.Repeat(`{"error":`, 20_000) + `"prompt is too long"`,
		"many":        `{"errors":[` + strings.Repeat(`{"message":"x"},`, 5_000) + `{"message":"prompt is too long"}]}`,
		"quoted deep": strings.Repeat(`{"error":"`, 5_000),
		"braces":      strings.Repeat(`{`, 60_000),
		"one word":    strings.Repeat(`maximum `, 8_000),
		"numbers":     strings.Repeat(`tokens 123456 > `, 4_000),
	} {
		if e := p.Refusal(400, http.Header{}, []byte(body)); e == nil || len(e.Message) > 1_100 {
			t.Errorf("%s: got %d bytes", name, len(e.Message))
		}
	}
}

func FuzzRefusal(f *testing.F) {
	for _, body := range []string{
		"", `{"error":{"message":"prompt is too long: 9000 tokens > 8192 maximum","code":"x"}}`, `[{"error":{"code":400}}]`,
		`{"detail":"Error code: 400 - {'error': {'message': 'it\'s', 'code': 7}}"}`, `{"error":{"metadata":{"raw":"{\"error\":\"{\\\"message\\\":1}\"}"}}}`, "<400> range [1, 8192]", "hush",
		`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}]`, `{"detail":[{"msg":"x"}],"message":{"detail":1}}`,
	} {
		f.Add(400, body, "-1")
	}
	f.Add(429, "<html>", "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Add(500, "", "NaN")
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		e := (&providerhttp.Peer{Provider: "p", Key: "hush"}).Refusal(status, http.Header{"Retry-After": {after}}, []byte(body))
		switch {
		case e.Kind == "", e.RetryAfter < 0, len(e.Code) > 1_010, strings.Contains(e.Error()+e.Code, "hush"):
			t.Errorf("got %+v", e)
		case e.Message == "" && status != 0, !utf8.ValidString(e.Message), len(e.Message) > 1_010, len(e.Words()) > 410:
			t.Errorf("got the message %q", e.Message)
		case e.Limit < 0 || e.Prompt < 0 || e.Requested < 0 || e.Kind != llm.KindContextLength && e.Limit+e.Prompt+e.Requested > 0:
			t.Errorf("got %s with limit %d, prompt %d, requested %d", e.Kind, e.Limit, e.Prompt, e.Requested)
		}
	})
}

func TestDroppedThoughts(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		want  *llm.DroppedThoughts
	}{
		"none":       {`{"input_transformations":[]}`, nil},
		"null":       {`{"input_transformations":null}`, nil},
		"absent":     {`{}`, nil},
		"odd":        {`{"input_transformations":{"type":"thinking_dropped"}}`, nil},
		"kept":       {`{"input_transformations":[{"type":"thinking_mismatch_allowed","reason":"prefix_binding_mismatch"}]}`, nil},
		"new type":   {`{"input_transformations":[{"type":"image_resized","path":"messages.0.content.0"}]}`, nil},
		"two":        {`{"input_transformations":[{"type":"thinking_dropped","reason":"prefix_binding_mismatch"},{"type":"thinking_dropped","reason":"prefix_binding_mismatch"}]}`, dropped(llm.DropPrefix, 2)},
		"model":      {`{"input_transformations":[{"type":"thinking_dropped","reason":"model_binding_mismatch"}]}`, dropped(llm.DropModel, 1)},
		"account":    {`{"input_transformations":[{"type":"thinking_dropped","reason":"organization_binding_mismatch"}]}`, dropped(llm.DropOrganization, 1)},
		"end user":   {`{"input_transformations":[{"type":"thinking_dropped","reason":"end_user_binding_mismatch"}]}`, dropped(llm.DropEndUser, 1)},
		"OpenAI's":   {`{"input_transformations":[{"type":"reasoning","action":"removed","reason":"prefix_mismatch"}]}`, dropped(llm.DropPrefix, 1)},
		"its others": {`{"input_transformations":[{"type":"reasoning","action":"kept","reason":"prefix_mismatch"},{"type":"reasoning","action":"removed","reason":"x"}]}`, dropped(llm.DropOther, 1)},
		"new reason": {`{"input_transformations":[{"type":"thinking_dropped","reason":"moon"}]}`, dropped(llm.DropOther, 1)},
	} {
		var answer struct {
			Changes providerhttp.Transformations `json:"input_transformations"`
		}
		if err := providerhttp.IgnoreType(json.Unmarshal([]byte(tt.event), &answer)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compare.Equal(t, name, tt.want, answer.Changes.ToCore())
	}
}

func dropped(reason llm.DropReason, n int) *llm.DroppedThoughts {
	return &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{reason: n}}
}
