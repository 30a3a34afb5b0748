package openai_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

func TestStreamUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		want   *core.Usage
	}{
		"OpenAI": {
			[]string{finishStop, `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":7}}}`},
			&core.Usage{InputTokens: 100, OutputTokens: 20, ReasoningTokens: 7, CacheReadTokens: 64},
		},
		"DeepSeek": {
			[]string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_cache_hit_tokens":8}}`},
			&core.Usage{InputTokens: 10, OutputTokens: 2, CacheReadTokens: 8},
		},
		"OpenRouter cache write": {
			[]string{finishStop, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cache_write_tokens":9}}}`},
			&core.Usage{InputTokens: 10, OutputTokens: 2, CacheWriteTokens: 9},
		},
		"in every chunk": {
			[]string{`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":1}}`, finishStop, `{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`},
			&core.Usage{InputTokens: 10, OutputTokens: 2},
		},
		"in the choice": {
			[]string{`{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":2}}]}`},
			&core.Usage{InputTokens: 10, OutputTokens: 2},
		},
		"null":        {[]string{`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}`}, nil},
		"zeros":       {[]string{finishStop, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}`}, nil},
		"wrong types": {[]string{finishStop, `{"choices":[],"usage":{"prompt_tokens":"many","completion_tokens":-3}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(append(append([]string{text("ok")}, c.events...), done)...))
			got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
			compare.Equal(t, "usage", c.want, got.Usage)
		})
	}
}

func TestToolCallsOfManyServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"Gemini: all have index 0": {
			[]string{
				call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}`),
				call(`{"index":0,"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":2}"}}`), finishStop,
			},
			`a f {"x":1} | b f {"x":2}`,
		},
		"O5: type repeated in every fragment": {
			[]string{
				call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\""}}`),
				call(`{"index":0,"type":"function","function":{"arguments":":1}"}}`), finishTools,
			},
			`a f {"x":1}`,
		},
		"O6: an empty fragment, O7: no type": {
			[]string{
				call(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), call(`{"index":0,"function":{"arguments":""}}`),
				call(`{"index":0,"function":{"arguments":"{}"}}`), finishTools,
			},
			`a f {}`,
		},
		"no index": {
			[]string{
				call(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"id":"b","function":{"name":"g","arguments":"{\"x\""}}`),
				call(`{"function":{"arguments":":2}"}}`), finishTools,
			},
			`a f {"x":1} | b g {"x":2}`,
		},
		"no index, id repeated": {
			[]string{call(`{"id":"a","function":{"name":"f","arguments":"{"}}`), call(`{"id":"a","function":{"arguments":"}"}}`), finishTools},
			`a f {}`,
		},
		"another id in every fragment": {
			[]string{
				call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`),
				call(`{"index":0,"id":"b","function":{"arguments":"}"}}`), finishTools,
			},
			`a f {}`,
		},
		"name repeated": {
			[]string{
				call(`{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}`),
				call(`{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}`), finishTools,
			},
			`a f {}`,
		},
		"arguments as an object": {
			[]string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x": 1}}}`), finishTools},
			`a f {"x": 1}`,
		},
		"arguments null": {
			[]string{call(`{"index":0,"id":"a","function":{"name":"f","arguments":null}}`), finishTools},
			`a f `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(append(c.events, done)...))
			got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
			compare.Equal(t, "calls, finish", []any{c.want, core.FinishToolCalls}, []any{calls(got), got.Finish})
		})
	}
}

func TestToolCallsWithoutIDsGetOne(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"one index": {
			call(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`),
			call(`{"index":0,"id":"","function":{"name":"f","arguments":"{}"}}`),
		},
		"the same id twice": {
			call(`{"index":0,"id":"x","function":{"name":"f","arguments":"{}"}}`),
			call(`{"index":1,"id":"x","function":{"name":"f","arguments":"{}"}}`),
		},
		"no index": {call(`{"function":{"name":"f","arguments":"{}"}}`, `{"function":{"name":"f","arguments":"{}"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(append(events, finishTools, done)...))
			got, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			if err != nil || len(got.ToolCalls) != 2 {
				t.Fatalf("got %q, %v, want two calls", calls(got), err)
			}
			a, b := got.ToolCalls[0].ID, got.ToolCalls[1].ID
			compare.True(t, a != "" && b != "" && a != b && len(a) <= 40 && len(b) <= 40, "got ids %q and %q, want two of at most 40 bytes", a, b)
		})
	}
}

// Gemini 3 refuses a call that comes back without its signature.
func TestGeminiSignatures(t *testing.T) {
	t.Parallel()
	s := serve(t, stream(
		call(`{"extra_content":{"google":{"thought_signature":"sig=="}},"function":{"arguments":"{}","name":"f"},"id":"a","type":"function"}`),
		call(`{"function":{"arguments":"{}","name":"f"},"id":"b","type":"function"}`), finishStop, done))
	m := s.model(t, openai.Options{Provider: "gemini", Model: "gemini-3-flash"})
	got, err := collect(t, m, ask("hi"))
	if err != nil || len(got.ToolCalls) != 2 || got.ToolCalls[0].Signature != "sig==" || got.ToolCalls[1].Signature != "" {
		t.Fatalf("got %+v, %v, want the signature on the first call", got.ToolCalls, err)
	}
	req := llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "go"},
		{Role: core.RoleAssistant, ToolCalls: got.ToolCalls},
		{Role: core.RoleTool, ToolCallID: "a", Content: "1"},
		{Role: core.RoleTool, ToolCallID: "b", Content: "2"},
		{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c", Name: "f"}}}, // of another provider's model
		{Role: core.RoleTool, ToolCallID: "c", Content: "3"},
	}}
	signatures := func(options openai.Options) string {
		var out []string
		for _, m := range sent(t, options, req)["messages"].([]any) {
			list, _ := m.(map[string]any)["tool_calls"].([]any)
			for _, c := range list {
				out = append(out, fmt.Sprint(c.(map[string]any)["extra_content"]))
			}
		}
		return strings.Join(out, " | ")
	}
	const signed, none = "map[google:map[thought_signature:sig==]] | <nil> | ", "<nil> | <nil> | <nil>"
	compare.Equal(t, "Gemini 3", signed+"map[google:map[thought_signature:skip_thought_signature_validator]]", signatures(openai.Options{Provider: "gemini", Model: "gemini-flash-latest"}))
	compare.Equal(t, "Gemini 2: want only the real one", signed+"<nil>", signatures(openai.Options{Provider: "gemini", Model: "models/gemini-2.5-flash"}))
	compare.Equal(t, "OpenAI", none, signatures(openai.Options{Provider: "openai"}))
}

// Where the template of the server has opened the thought in the prompt, and the settings say so, no
// delta has the thought as text. A server that separates it is not touched.
func TestOpenedThoughts(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]string{
		"in the text": {text("They greet"), text(" me.</th"), text("ink>Hello!"), finishStop},
		"separate":    {`{"choices":[{"delta":{"reasoning_content":"They greet me."}}]}`, text("Hello!"), finishStop},
	} {
		s := serve(t, llmtest.Stream(events...))
		var shown strings.Builder
		got := must.Get(llm.Collect(s.model(t, openai.Options{Info: llm.Info{OpensThought: true}}).Stream(t.Context(), ask("hi")), func(d llm.Delta) { shown.WriteString(d.Text) }))(t)
		compare.Equal(t, name+": text, shown, thoughts", []any{"Hello!", "Hello!", "They greet me."}, []any{got.Text, shown.String(), got.Reasoning})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		kind llm.ErrorKind
		says string
	}{
		"error with status 200": {`{"error":{"message":"no","type":"invalid_request_error"}}`, llm.KindInvalid, "no"},
		"web page":              {"<!doctype html><p>Welcome", llm.KindUnknown, "base_url"},
		"a list":                {`[{"error":{"message":"no"}}]`, llm.KindUnknown, "no"},
		"empty":                 {"", llm.KindTruncated, "finish reason"},
		"half of an object":     {`{"choices":[{"mess`, llm.KindTruncated, "in the middle"},
		"O2: only [DONE]":       {"data: [DONE]\n\n", llm.KindTruncated, "finish reason"},
		"no choices":            {`{"choices":[]}`, llm.KindTruncated, "finish reason"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, refuse(http.StatusOK, c.body))
			_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
			compare.True(t, llm.IsKind(err, c.kind) && strings.Contains(err.Error(), c.says), "got %v, want %s that says %q", err, c.kind, c.says)
		})
	}
}

func TestFormsOfStreams(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"comments, ids, CRLF": ": OPENROUTER PROCESSING\r\n\r\nid: 1\r\nevent: message\r\ndata: " + text("ok") + "\r\n\r\nretry: 5\r\n\r\ndata: " + finishStop + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"no space":            "data:" + text("ok") + "\n\ndata:" + finishStop + "\n\ndata:[DONE]\n\n",
		"no empty lines":      "data: " + text("ok") + "\ndata: " + finishStop + "\ndata: [DONE]\n",
		"several data lines":  "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"ok\"},\ndata: \"finish_reason\":\"stop\"}]}\n\n",
		"no end of line":      "data: " + text("ok") + "\n\ndata: " + finishStop,
		"no [DONE]":           "data: " + text("ok") + "\n\ndata: " + finishStop + "\n\n",
		"no finish reason":    "data: " + text("ok") + "\n\ndata: [DONE]\n\n",
		"byte order mark":     "\xEF\xBB\xBFdata: " + text("ok") + "\n\ndata: " + finishStop + "\n\n",
		"signs of life":       "data: ping\n\ndata: \n\ndata: " + text("ok") + "\n\ndata: " + finishStop + "\n\n",
		"upper case":          "data: " + text("ok") + "\n\ndata: {\"choices\":[{\"finish_reason\":\"STOP\"}]}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, refuse(http.StatusOK, body))
			got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
			compare.Equal(t, "text, finish", []any{"ok", core.FinishStop}, []any{got.Text, got.Finish})
		})
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]core.FinishReason{
		"stop": core.FinishStop, "length": core.FinishLength, "model_length": core.FinishLength, "MAX_TOKENS": core.FinishLength,
		"content_filter": core.FinishContentFilter, "sensitive": core.FinishContentFilter, "refusal": core.FinishContentFilter, "function_call": core.FinishToolCalls, "abort": "abort",
	} {
		s := serve(t, stream(text("x"), fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":%q}]}`, word), done))
		compare.Equal(t, word, want, must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t).Finish)
	}
}

func TestDefaultTimeouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first []string
		want  time.Duration
		says  string
	}{
		"headers": {nil, time.Minute, "no answer within 1m0s"},
		"idle":    {[]string{text("par")}, 2 * time.Minute, "nothing more came within 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, func(w http.ResponseWriter, r *http.Request) {
					if c.first != nil {
						say(w, c.first...)
					}
					<-r.Context().Done()
				})
				start := time.Now()
				_, err := collect(t, s.model(t, openai.Options{}), ask("hi"))
				compare.True(t, llm.IsKind(err, llm.KindTimeout) && strings.Contains(err.Error(), c.says), "got %v, want KindTimeout that says %q", err, c.says)
				compare.Equal(t, "took", c.want, time.Since(start))
			})
		})
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	// On simulated time: an answer has 100 ms to end, which a busy machine takes by itself.
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, stream(text("a"), finishStop, done))
		dials := 0
		dial := s.Transport.DialContext
		s.Transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dials++
			return dial(ctx, network, address)
		}
		m := s.model(t, openai.Options{})
		for range 5 {
			must.Get(collect(t, m, ask("hi")))(t)
		}
		compare.Equal(t, "connections for 5 calls", 1, dials)
	})
}

func TestAServerThatDoesNotEndAfterDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			say(w, text("a"), finishStop, done)
			<-r.Context().Done()
		})
		start := time.Now()
		got := must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t)
		compare.True(t, got.Text == "a" && time.Since(start) <= time.Second, "got %q after %v, want a at once", got.Text, time.Since(start))
	})
}

func TestConnectionBreaksAfterTheFinishReason(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		say(w, text("par"), finishStop)
		panic(http.ErrAbortHandler)
	})
	compare.Equal(t, "got.Text: want the answer", "par", must.Get(collect(t, s.model(t, openai.Options{}), ask("hi")))(t).Text)
}

// Which model has answered comes with the end of the answer, if the provider says it.
// Pieces that came together are one delta. None waits for what has not come, a comment behind it or not.
func TestPiecesThatCameTogether(t *testing.T) {
	t.Parallel()
	shown := make(chan string)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, events := range [][]string{{text("a"), text("b")}, {text("c"), text("d"), finishStop, done}} {
			_, _ = fmt.Fprint(w, "data: "+strings.Join(events, "\n\ndata: ")+"\n\n: ping\n\n")
			w.(http.Flusher).Flush()
			select {
			case got := <-shown:
				compare.Equal(t, "text", map[string]string{"a": "ab", "c": "cd"}[got[:1]], got)
			case <-r.Context().Done():
			}
		}
	})
	for d, err := range s.model(t, openai.Options{}).Stream(t.Context(), ask("hi")) {
		if must.Do(t, err); d.Text != "" {
			shown <- d.Text
		}
	}
}

func TestAnsweringModel(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]string{
		"gpt-4o-2024-08-06": `{"model":"gpt-4o-2024-08-06","choices":[{"delta":{"content":"hi"}}]}`,
		"":                  `{"model":null,"choices":[{"delta":{"content":"hi"}}]}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { say(w, event, finishStop, done) })
		got, ended := "", false
		for d, err := range s.model(t, openai.Options{}).Stream(t.Context(), ask("hi")) {
			must.Do(t, err)
			if d.Finish != "" {
				got, ended = d.Model, true
			}
		}
		compare.Equal(t, "state at the end", []any{want, true}, []any{got, ended})
	}
}

// FuzzStream: see llmtest.
func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		{text("Hel"), text("lo"), finishStop, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, done},
		{call(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`, `{"index":1,"function":{"name":"g"}}`), finishTools, done},
		{call(`{"id":"a","function":{"name":"f","arguments":{"x":[1]}}}`), call(`{"function":{"arguments":"x"}}`), finishStop},
		{text("par"), `{"error":{"message":"m","type":"server_error","code":500}}`},
		{`{"choices":[{"index":1,"message":{"content":[{"type":"thinking","thinking":[{"text":"hm"}]},{"text":"ok"}]},"finish_reason":"length"}]}`},
		{`[{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}]`},
	} {
		var body bytes.Buffer
		for _, e := range events {
			body.WriteString("data: " + e + "\n\n")
		}
		f.Add(body.Bytes())
		f.Add([]byte(events[0]))
	}
	f.Add([]byte("\xEF\xBB\xBFevent: error\r\ndata: {\r\ndata: }\r\n\r\n: x\nerror: {\"message\":\"x\"}\n"))
	llmtest.FuzzStream(f, func(transport http.RoundTripper) (llm.Model, error) {
		return openai.New(openai.Options{Model: "m", BaseURL: baseURL, Transport: transport})
	})
}
