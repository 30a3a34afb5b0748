package openai_test

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestO11ErrorsAreTyped(t *testing.T) {
	t.Parallel()
	const body = `{"error":{"message":"order 4290 is not valid","type":"invalid_request_error","code":"bad_order","param":null}}`
	s := serve(t, refuse(http.StatusBadRequest, body, "Retry-After: 7"))
	_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
	e := llm.AsError(err)
	if e == nil {
		t.Fatalf("got %v, want an *llm.Error", err)
	}
	want := llm.Error{
		Kind: llm.KindInvalid, Unclear: true, Message: "order 4290 is not valid", Provider: "openai", Status: 400, Code: "bad_order",
		RetryAfter: 7 * time.Second,
	}
	if *e != want {
		t.Errorf("got %+v, want %+v", *e, want)
	}
}

func TestO12NothingIsFlattened(t *testing.T) {
	t.Parallel()
	t.Run("network", func(t *testing.T) {
		t.Parallel()
		refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
		m, err := openai.New(openai.Options{Model: "m", BaseURL: baseURL, Transport: llmtest.Transport(func(*http.Request) (*http.Response, error) {
			return nil, refused
		})})
		must.Do(t, err)
		_, err = collect(t, m, ask("hi"))
		if !llm.IsKind(err, llm.KindNetwork) || !errors.Is(err, refused) {
			t.Errorf("got %v, want KindNetwork that wraps the cause", err)
		}
		compare.Equal(t, "err.Error()", "openai: network: http://provider.test/v1 was not reached: dial tcp: connection refused", err.Error())
	})
}
