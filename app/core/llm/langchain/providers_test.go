package langchain_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/llm/providerhttp"
)

func TestAnswer(t *testing.T) {
	for _, s := range scripts() {
		t.Run(s.provider, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, s.answer...) })
			res, deltas, err := collect(timeLimit(t), server.open(t, langchain.Options{Provider: s.provider, APIKey: "key"}), hello())
			if err != nil {
				t.Fatal(err)
			}
			want := "Hello |there"
			if s.begin == nil {
				want = "Hello there"
			}
			if join(deltas) != want || res.Finish != core.FinishStop {
				t.Errorf("got %q, finish %q; want %q, stop", join(deltas), res.Finish, want)
			}
			if s.begin != nil && (res.Usage == nil || *res.Usage != core.Usage{InputTokens: 7, OutputTokens: 3}) {
				t.Errorf("got usage %+v, want 7 and 3", res.Usage)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	tests := []struct {
		provider, path, want string
	}{
		{"langchain/mistral", "/v1/chat/completions", "map[max_tokens:50 messages:[map[content:Be brief. role:system] map[content:Hello role:user]] model:the-model random_seed:9 safe_prompt:false stream:true temperature:0.5 tools:[] top_p:1]"},
		{"langchain/ollama", "/api/chat", "map[format: messages:[map[content:Be brief. role:system] map[content:Hello role:user]] model:the-model options:map[num_ctx:8192 num_predict:50 seed:9 temperature:0.5] stream:true]"},
		{"langchain/huggingface", "/models/the-model", "map[inputs:Be brief.\n\nUser: Hello\n\nAssistant: parameters:map[seed:9 temperature:0.5]]"},
	}
	for _, test := range tests {
		t.Run(test.provider, func(t *testing.T) {
			i := slices.IndexFunc(scripts(), func(s script) bool { return s.provider == test.provider })
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, scripts()[i].answer...) })
			req, temperature, seed := hello(), 0.5, 9
			req.Temperature, req.Seed, req.MaxOutputTokens = &temperature, &seed, 50
			req.Tools = []llm.ToolSpec{{Name: "clock"}} // which none of them takes
			m := server.open(t, langchain.Options{Provider: test.provider, APIKey: "key", Info: llm.Info{Window: 8192}})
			if _, _, err := collect(timeLimit(t), m, req); err != nil {
				t.Fatal(err)
			}
			got := server.last(t)
			if got.path != test.path || fmt.Sprint(got.body) != test.want {
				t.Errorf("got %s %v\nwant %s %s", got.path, got.body, test.path, test.want)
			}
			if key := got.authorization; key != "Bearer key" && test.provider != "langchain/ollama" {
				t.Errorf("got the authorization %q", key)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, s := range scripts() {
		for _, test := range []struct {
			status int
			body   string
			want   llm.ErrorKind
		}{
			{401, `{"error":"wrong key sk-secret"}`, llm.KindAuth},
			{429, `{"error":"slow down"}`, llm.KindRateLimit},
			{503, `{"error":"busy"}`, llm.KindOverloaded},
			{404, `{"error":"model 'the-model' not found"}`, llm.KindNotFound},
			{400, s.tooLong, llm.KindContextLength},
		} {
			t.Run(fmt.Sprint(s.provider, " ", test.status), func(t *testing.T) {
				server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(test.status)
					write(w, test.body)
				})
				_, _, err := collect(timeLimit(t), server.open(t, langchain.Options{Provider: s.provider, APIKey: "sk-secret"}), hello())
				e := llm.AsError(err)
				if e == nil || e.Kind != test.want || e.Status != test.status || e.Provider != s.provider {
					t.Fatalf("got %#v, want %s with status %d", e, test.want, test.status)
				}
				if strings.Contains(err.Error(), "sk-secret") {
					t.Errorf("the error shows the key: %v", err)
				}
			})
		}
	}
}

func TestUnreached(t *testing.T) {
	for _, s := range scripts() {
		server := serve(t, func(http.ResponseWriter, *http.Request) {})
		m := server.open(t, langchain.Options{Provider: s.provider, APIKey: "key"})
		server.Close()
		if _, _, err := collect(timeLimit(t), m, hello()); !llm.IsKind(err, llm.KindNetwork) {
			t.Errorf("%s: got %v, want a network error", s.provider, err)
		}
	}
}

// A canceled call ends immediately, also where the client of the provider ignores the
// context.
func TestCancel(t *testing.T) {
	for _, s := range scripts() {
		if s.begin == nil {
			continue
		}
		t.Run(s.provider, func(t *testing.T) {
			release := make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				write(w, s.begin...)
				select {
				case <-release:
				case <-r.Context().Done():
				}
			})
			defer close(release)
			ctx, cancel := context.WithCancelCause(timeLimit(t))
			stopped := errors.New("stopped by the user")
			var text string
			res, err := llm.Collect(server.open(t, langchain.Options{Provider: s.provider, APIKey: "key"}).Stream(ctx, hello()), func(d llm.Delta) {
				text += d.Text
				cancel(stopped)
			})
			if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, stopped) || text != "Hello " || res.Text != text {
				t.Errorf("got %q and %v, want the beginning and a cancellation", text, err)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	for _, s := range scripts() {
		if s.begin == nil {
			continue
		}
		for name, end := range map[string]func(){"in order": func() {}, "abruptly": func() { panic(http.ErrAbortHandler) }} {
			t.Run(s.provider+" "+name, func(t *testing.T) {
				server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					write(w, s.begin...)
					end()
				})
				_, deltas, err := collect(timeLimit(t), server.open(t, langchain.Options{Provider: s.provider, APIKey: "key"}), hello())
				if !llm.IsKind(err, llm.KindTruncated) || join(deltas) != "Hello " {
					t.Errorf("got %q and %v, want the beginning and a truncated answer", join(deltas), err)
				}
			})
		}
	}
}

func TestSilence(t *testing.T) {
	for _, s := range scripts() {
		release := make(chan struct{})
		server := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		m := server.open(t, langchain.Options{Provider: s.provider, APIKey: "key", Timeouts: providerhttp.Timeouts{Idle: time.Millisecond}})
		if _, _, err := collect(timeLimit(t), m, hello()); !llm.IsKind(err, llm.KindTimeout) {
			t.Errorf("%s: got %v, want a timeout", s.provider, err)
		}
		close(release)
	}
}

func TestUnknownProvider(t *testing.T) {
	_, err := langchain.New(langchain.Options{Provider: "langchain/cohere", Model: "command"})
	want := `the provider "langchain/cohere" does not exist; langchaingo's are langchain/huggingface, langchain/mistral, langchain/ollama`
	if err == nil || err.Error() != want || !errors.Is(err, core.ErrInvalid) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRefusedOptions(t *testing.T) {
	for _, o := range []langchain.Options{
		{Provider: "langchain/mistral"},
		{Provider: "langchain/mistral", Model: "m", BaseURL: "https://proxy.example/mistral"},
		{Provider: "langchain/ollama", Model: "m", BaseURL: "localhost"},
	} {
		if _, err := langchain.New(o); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%v: got %v, want it refused", o, err)
		}
	}
}

// What a provider does not take is in its Info, so that agents that set it are refused by
// name.
func TestLacks(t *testing.T) {
	for _, s := range scripts() {
		m, err := langchain.New(langchain.Options{Provider: s.provider, Model: "m", APIKey: "key", Info: llm.Info{Images: true, Documents: llm.DocumentsAlways}})
		if err != nil {
			t.Fatal(err)
		}
		info := m.Info()
		lacking := info.LackingFor(core.Agent{Tools: []string{"clock"}, ModelParameters: core.ModelParameters{ReasoningEffort: "low"}})
		if fmt.Sprint(lacking) != "[reasoning_effort tools]" || info.Images != (s.provider == "langchain/ollama") || info.Documents != llm.DocumentsNever {
			t.Errorf("%s: got %v and %+v", s.provider, lacking, info)
		}
	}
}

func TestImage(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { write(w, scripts()[1].answer...) })
	req := hello()
	req.Messages[0].Media = []llm.Media{{Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("picture")}}
	if _, _, err := collect(timeLimit(t), server.open(t, langchain.Options{Provider: "langchain/ollama"}), req); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(server.last(t).body["messages"]); !strings.Contains(got, "images:[cGljdHVyZQ==]") {
		t.Errorf("got %s, want the image", got)
	}
}
