package llmtest

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

// Transport is a function as a transport.
type Transport func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f Transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// FuzzStream checks an adapter: whatever the provider streams, the answer ends with a typed error or
// with a finish reason; calls have different ids; and how the bytes were cut into packets changes nothing.
func FuzzStream(f *testing.F, open func(http.RoundTripper) (llm.Model, error)) {
	f.Helper()
	f.Fuzz(func(t *testing.T, body []byte) {
		read := func(r io.Reader) (llm.Response, error) {
			m, err := open(Transport(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(r)}, nil
			}))
			must.Do(t, err)
			return Collect(t, m, Ask("hi"))
		}
		whole, err := read(bytes.NewReader(body))
		if err != nil && llm.AsError(err) == nil {
			t.Fatalf("got %v, want an *llm.Error", err)
		}
		if (err == nil) != (whole.Finish != "") {
			t.Fatalf("got finish %q with %v, want exactly one of both", whole.Finish, err)
		}
		ids := map[string]bool{}
		for i, c := range whole.ToolCalls {
			if c.ID == "" && err == nil || c.ID != "" && ids[c.ID] { // a missing one may come last
				t.Fatalf("call %d has the id %q, want one of its own", i, c.ID)
			}
			ids[c.ID] = true
		}
		slow, slowErr := read(iotest.OneByteReader(bytes.NewReader(body)))
		if (err == nil) != (slowErr == nil) || err != nil && llm.AsError(slowErr).Kind != llm.AsError(err).Kind {
			t.Fatalf("got %v, and byte by byte %v", err, slowErr)
		}
		if diff := cmp.Diff(whole, slow, cmpopts.IgnoreFields(core.ToolCall{}, "ID")); diff != "" { // ours are random
			t.Fatalf("byte by byte is different (-whole +slow):\n%s", diff)
		}
	})
}
