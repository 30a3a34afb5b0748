package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestAnswer(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, firstPiece, lastPieces) })
	req, temperature, seed := hello(), 0.5, 9
	req.Temperature, req.Seed, req.MaxOutputTokens = &temperature, &seed, 50
	req.Tools = []llm.ToolSpec{{Name: "clock"}} // which it does not take
	req.Messages[0].Media = []llm.Media{{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("picture")}}
	res, deltas, err := collect(timeLimit(t), server.open(t, langchain.Options{Info: llm.Info{Window: 8192}}), req)
	must.Do(t, err)
	if join(deltas) != "Hello |there" || res.Finish != core.FinishStop || res.Usage == nil || *res.Usage != (core.Usage{InputTokens: 7, OutputTokens: 3}) {
		t.Errorf("got %q, finish %q, usage %+v", join(deltas), res.Finish, res.Usage)
	}
	want := "map[format: messages:[map[content:Be brief. role:system] map[content:Hello images:[cGljdHVyZQ==] role:user]] model:the-model options:map[num_ctx:8192 num_predict:50 seed:9 temperature:0.5] stream:true]"
	got := server.Last()
	compare.Equal(t, "request", []any{"/api/chat", want}, []any{got.Path, fmt.Sprint(got.JSON())})
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		status int
		body   string
		want   llm.ErrorKind
	}{
		{401, `{"error":"wrong key sk-secret"}`, llm.KindAuth},
		{429, `{"error":"slow down"}`, llm.KindRateLimit},
		{503, `{"error":"busy"}`, llm.KindOverloaded},
		{404, `{"error":"model 'the-model' not found"}`, llm.KindNotFound},
		{200, `{"error":"cannot read order 4290"}`, llm.KindUnknown}, // words that a user may have written do not decide
		{400, `{"error":"the input length exceeds the context length of 4096 tokens"}`, llm.KindContextLength},
	} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			write(w, test.body)
		})
		_, _, err := collect(timeLimit(t), server.open(t, langchain.Options{APIKey: "sk-secret"}), hello())
		e := llm.AsError(err)
		compare.True(t, e != nil && e.Kind == test.want && (e.Status == test.status || test.status == http.StatusOK) && e.Provider == llm.ProviderLangchainOllama, "got %#v, want %s with status %d", e, test.want, test.status)
		compare.True(t, err == nil || !strings.Contains(err.Error(), "sk-secret"), "the error shows the key: %v", err)
	}
	server := serve(t, func(http.ResponseWriter, *http.Request) {})
	m := server.open(t, langchain.Options{})
	server.Close()
	if _, _, err := collect(timeLimit(t), m, hello()); !llm.IsKind(err, llm.KindNetwork) {
		t.Errorf("got %v, want a network error", err)
	}
}

// holdOpen answers with the beginning and waits.
func holdOpen(begin ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		write(w, begin...)
		<-r.Context().Done()
	}
}

func TestCancel(t *testing.T) {
	server := serve(t, holdOpen(firstPiece))
	ctx, cancel := context.WithCancelCause(timeLimit(t))
	stopped := errors.New("stopped by the user")
	var text string
	res, err := llm.Collect(server.open(t, langchain.Options{}).Stream(ctx, hello()), func(d llm.Delta) {
		text += d.Text
		cancel(stopped)
	})
	compare.True(t, llm.IsKind(err, llm.KindCanceled) && errors.Is(err, stopped) && text == "Hello " && res.Text == text, "got %q and %v, want the beginning and a cancellation", text, err)
}

// A caller that leaves the loop ends the request.
func TestLeave(t *testing.T) {
	ended := make(chan struct{})
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		holdOpen(firstPiece, lastPieces)(w, r)
		close(ended)
	})
	for _, err := range server.open(t, langchain.Options{}).Stream(t.Context(), hello()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-ended
}

func TestTruncated(t *testing.T) {
	for name, end := range map[string]func(){"in order": func() {}, "abruptly": func() { panic(http.ErrAbortHandler) }} {
		server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			write(w, firstPiece)
			end()
		})
		_, deltas, err := collect(timeLimit(t), server.open(t, langchain.Options{}), hello())
		compare.Equal(t, name+": truncated, text so far", []any{true, "Hello "}, []any{llm.IsKind(err, llm.KindTruncated), join(deltas)})
	}
}

func TestSilence(t *testing.T) {
	m := serve(t, holdOpen()).open(t, langchain.Options{Timeouts: providerhttp.Timeouts{Idle: time.Millisecond}})
	if _, _, err := collect(timeLimit(t), m, hello()); !llm.IsKind(err, llm.KindTimeout) {
		t.Errorf("got %v, want a timeout", err)
	}
}

// What Ollama does not take here is in its Info, so that agents that set it are refused by name.
func TestOptions(t *testing.T) {
	for _, o := range []langchain.Options{{}, {Model: "m", BaseURL: "localhost"}} {
		compare.Error(t, fmt.Sprintf("%v: want it refused", o), core.ErrInvalid, compare.ErrorOf(langchain.New(o)))
	}
	m := must.Get(langchain.New(langchain.Options{Model: "m", Info: llm.Info{Images: true, Documents: llm.DocumentsAlways}}))(t)
	info := m.Info()
	lacking := info.LackingFor(core.Agent{Tools: []string{"clock"}, ModelParameters: core.ModelParameters{ReasoningEffort: "low"}})
	compare.True(t, fmt.Sprint(lacking) == "[reasoning_effort tools]" && info.Images && info.Documents == llm.DocumentsNever, "got %v and %+v", lacking, info)
}

// server is a scripted provider over real HTTP.
type server struct{ *llmtest.Server }

func serve(t *testing.T, answer http.HandlerFunc) *server {
	t.Helper()
	return &server{llmtest.Serve(t, answer)}
}

func (s *server) open(t *testing.T, o langchain.Options) *langchain.Model {
	t.Helper()
	o.Model, o.BaseURL = "the-model", s.URL
	return must.Get(langchain.New(o))(t)
}

// write sends the lines one by one.
func write(w http.ResponseWriter, lines ...string) {
	for _, line := range lines {
		fmt.Fprint(w, line+"\n")
		http.NewResponseController(w).Flush()
	}
}

func hello() llm.Request {
	return llm.Request{System: []string{"Be brief."}, Messages: []llm.Message{{Role: core.RoleUser, Content: "Hello"}}}
}

// collect returns the answer and its text deltas.
func collect(ctx context.Context, m llm.Model, req llm.Request) (res llm.Response, deltas []string, err error) {
	res, err = llm.Collect(m.Stream(ctx, req), func(d llm.Delta) {
		if d.Text != "" {
			deltas = append(deltas, d.Text)
		}
	})
	return res, deltas, err
}

func timeLimit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// What the server sends: an answer of "Hello there", 7 tokens to 3.
const (
	firstPiece = `{"model":"m","message":{"role":"assistant","content":"Hello "},"done":false}`
	lastPieces = `{"model":"m","message":{"role":"assistant","content":"there"},"done":false}
{"model":"m","message":{"role":"assistant","content":""},"done":true,"prompt_eval_count":7,"eval_count":3}`
)

func join(deltas []string) string { return strings.Join(deltas, "|") }
