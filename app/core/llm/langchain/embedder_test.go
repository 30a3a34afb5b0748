package langchain_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// embedServer is a scripted provider of embeddings, without a network.
type embedServer struct {
	answer   http.HandlerFunc
	requests []embedRequest
}

type embedRequest struct {
	path, key string
	body      []byte
}

// RoundTrip answers the request.
func (s *embedServer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.requests = append(s.requests, embedRequest{r.URL.Path, r.Header.Get("Authorization"), body})
	w := httptest.NewRecorder()
	s.answer(w, r)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return w.Result(), nil
}

// embedder returns an embedder that talks to the server.
func (s *embedServer) embedder(t *testing.T, key string, limits providerhttp.Timeouts) *langchain.Embedder {
	t.Helper()
	e := must.Get(langchain.NewEmbedder(langchain.Options{
		Provider: "openai", Model: "embed-1", BaseURL: "http://provider.test/v1", APIKey: key, Transport: s, Timeouts: limits,
	}, slog.New(slog.DiscardHandler)))(t)
	return e
}

// answerVectors writes a vector for each text: 1 and its number, in any order.
func answerVectors(w http.ResponseWriter, order []int) {
	var data []string
	for _, i := range order {
		data = append(data, fmt.Sprintf(`{"object":"embedding","embedding":[1,%d],"index":%d}`, i, i))
	}
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"x"}`, strings.Join(data, ","))
}

// texts is what a request asked for.
func texts(t *testing.T, r embedRequest) []string {
	t.Helper()
	var body struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if err := json.Unmarshal(r.body, &body); err != nil || body.Model != "embed-1" || r.path != "/v1/embeddings" {
		t.Fatalf("got %s to %s, error %v; want an embedding by embed-1", r.body, r.path, err)
	}
	return body.Input
}

func TestEmbedderKeepsTexts(t *testing.T) {
	t.Parallel()
	s := &embedServer{answer: func(w http.ResponseWriter, _ *http.Request) { answerVectors(w, []int{0, 1, 2}) }}
	in := []string{"a\nb", "c", "d"}
	e := s.embedder(t, "k3y", providerhttp.Timeouts{})
	compare.Equal(t, "before: dimension of", []any{0, "openai:embed-1"}, []any{e.Dimension(), e.Model()})
	got, err := e.Embed(t.Context(), in)
	must.True(t, err == nil && in[0] == "a\nb", "got error %v, texts %q; want them as they were", err, in)
	half, fifth := float32(1/math.Sqrt2), float32(1/math.Sqrt(5))
	compare.Equal(t, "vectors", [][]float32{{1, 0}, {half, half}, {fifth, 2 * fifth}}, got)
	compare.Equal(t, "request: key, texts", []string{"", "Bearer k3y"}, []string{cmp.Diff(in, texts(t, s.requests[0])), s.requests[0].key})
	compare.Equal(t, "after: dimension", 2, e.Dimension())
	if _, err := s.embedder(t, "", providerhttp.Timeouts{}).Embed(t.Context(), in); err != nil || s.requests[1].key != "" {
		t.Errorf("without a key: got %v, authorization %q", err, s.requests[1].key)
	}
}

// A request holds at most 64 texts and 256 KiB, and the vectors are in order over
// all of them.
func TestEmbedderBatches(t *testing.T) {
	t.Parallel()
	s := &embedServer{}
	s.answer = func(w http.ResponseWriter, _ *http.Request) {
		var data []string
		for i, text := range texts(t, s.requests[len(s.requests)-1]) {
			data = append(data, fmt.Sprintf(`{"embedding":[%d,1],"index":%d}`, len(text), i))
		}
		fmt.Fprintf(w, `{"data":[%s]}`, strings.Join(data, ","))
	}
	in := make([]string, 150)
	for i := range in {
		in[i] = strings.Repeat("x", i+1)
	}
	in = append(in, strings.Repeat("y", 200<<10), strings.Repeat("z", 100<<10), strings.Repeat("z", 300<<10))
	got := must.Get(s.embedder(t, "", providerhttp.Timeouts{}).Embed(t.Context(), in))(t)
	for i, v := range got {
		if ratio := float64(v[0]) / float64(v[1]); math.Abs(ratio/float64(len(in[i]))-1) > 1e-3 {
			t.Fatalf("vector %d: got that of a text of %g bytes, want %d", i, ratio, len(in[i]))
		}
	}
	var sizes []int
	for _, r := range s.requests {
		sizes = append(sizes, len(texts(t, r)))
	}
	compare.Equal(t, "texts in each request", []int{64, 64, 23, 1, 1}, sizes)
	compare.Equal(t, "no texts: len(got)", 0, len(must.Get(s.embedder(t, "", providerhttp.Timeouts{}).Embed(t.Context(), nil))(t)))
}

// Answers that are none are errors that say so, and show no key.
func TestEmbedderFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		kind   llm.ErrorKind
		says   string
	}{
		{"key refused", 401, `{"error":{"message":"Incorrect API key provided: s3cret","code":"invalid_api_key"}}`, llm.KindAuth, "***"},
		{"no such model", 404, `{"error":{"message":"no model","code":"model_not_found"}}`, llm.KindNotFound, "no model"},
		{"text too long", 400, `{"error":{"message":"This model's maximum context length is 8192 tokens, however you requested 9000 tokens"}}`, llm.KindContextLength, ""},
		{"error with status 200", 200, `{"error":{"message":"busy","code":"rate_limit_exceeded"}}`, llm.KindRateLimit, "busy"},
		{"too few", 200, `{"data":[{"embedding":[1],"index":0}]}`, llm.KindUnknown, "unexpected length"},
		{"too many", 200, `{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}`, llm.KindUnknown, "unexpected length"},
		{"no list", 200, `{"data":[{"embedding":"AACAPw=="},{"embedding":"AACAPw=="}]}`, llm.KindUnknown, "not what was asked for"},
		{"null", 200, `{"data":[{"embedding":null},{"embedding":[1]}]}`, llm.KindUnknown, "0 numbers"},
		{"empty", 200, `{"data":[{"embedding":[]},{"embedding":[1]}]}`, llm.KindUnknown, "0 numbers"},
		{"of two dimensions", 200, `{"data":[{"embedding":[1,2]},{"embedding":[1]}]}`, llm.KindUnknown, "want 2"},
		{"no direction", 200, `{"data":[{"embedding":[0,0]},{"embedding":[1,0]}]}`, llm.KindUnknown, "length 0"},
		{"no number", 200, `{"data":[{"embedding":[1,1e999]},{"embedding":[1,0]}]}`, llm.KindUnknown, "not what was asked for"},
		{"a web page", 200, `<html>s3cret</html>`, llm.KindUnknown, "base_url"},
		{"no JSON", 200, `{"data":[`, llm.KindUnknown, "not what was asked for"},
		{"nothing", 200, ``, llm.KindUnknown, "not what was asked for"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &embedServer{answer: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}}
			var got [][]float32
			var err error
			synctest.Test(t, func(t *testing.T) { // what may pass is tried again
				got, err = s.embedder(t, "s3cret", providerhttp.Timeouts{}).Embed(t.Context(), []string{"a", "b"})
			})
			must.True(t, llm.IsKind(err, tt.kind) && errors.Is(err, core.ErrModel) && got == nil, "got %v, error %v; want kind %s", got, err, tt.kind)
			text := err.Error()
			compare.True(t, strings.Contains(text, tt.says) && !strings.Contains(text, "s3cret") && len(text) <= 2000, "got %q, want %q in it and no key", text, tt.says)
		})
	}
}

// What may pass is tried again; what takes too long ends.
func TestEmbedderRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		s := &embedServer{answer: func(w http.ResponseWriter, _ *http.Request) {
			if calls++; calls < 3 {
				w.Header().Set("Retry-After", "2")
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			answerVectors(w, []int{0})
		}}
		began := time.Now()
		if _, err := s.embedder(t, "", providerhttp.Timeouts{}).Embed(t.Context(), []string{"a"}); err != nil || calls != 3 {
			t.Errorf("got %d calls, error %v; want the third to succeed", calls, err)
		}
		took := time.Since(began)
		compare.True(t, took >= 4*time.Second, "waited %v, want twice what the provider asked for", took)
	})
	synctest.Test(t, func(t *testing.T) {
		s := &embedServer{answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }}
		e := s.embedder(t, "", providerhttp.Timeouts{Headers: time.Second})
		if _, err := e.Embed(t.Context(), []string{"a"}); !llm.IsKind(err, llm.KindTimeout) || len(s.requests) != 4 {
			t.Errorf("a provider that hangs: got error %v after %d requests, want a timeout after 4", err, len(s.requests))
		}
	})
}
