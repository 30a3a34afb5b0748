package anthropic_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const compactor = "claude-opus-5-5"

// compacted is a prompt that begins with the compaction.
func compacted(p core.Part) llm.Request {
	p.Type = core.PartCompaction
	return llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Parts: []core.Part{p}},
		{Role: core.RoleAssistant, Content: "kept"},
		{Role: core.RoleUser, Content: "hi"},
	}}
}

// stream is an answer as events.
func stream(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

// compactionEvents is a compaction as a stream.
func compactionEvents(block ...string) string {
	return stream(append(append([]string{
		`{"type":"message_start","message":{"type":"message","model":"m","content":[],"usage":{"input_tokens":0,"output_tokens":0}}}`,
	}, block...),
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"compaction"},"usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":90,"output_tokens":5,"cache_read_input_tokens":10}]}}`,
		`{"type":"message_stop"}`)...)
}

func TestModelsThatCompact(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"claude-sonnet-4-6": true, "claude-opus-4-8": true, "claude-mythos-preview": true, "claude-fable-5": true, "claude-mythos-5-2": true,
		"claude-haiku-5-5-20260901": true, "us.anthropic.claude-opus-5-v1:0": true,
		"claude-haiku-4-5": false, "claude-opus-4-20250514": false, "claude-opus-6": false, "other": false,
	} {
		info := open(t, anthropic.Options{Model: model}).Info()
		compare.Equal(t, model, want, info.Compacts)
	}
}

// A compaction is asked for with the prompt as it is, and without what shapes an answer.
func TestCompactionRequest(t *testing.T) {
	t.Parallel()
	req := ask("hi")
	req.Compact = true
	req.Stop, req.ToolChoice, req.ParallelToolCalls = []string{"END"}, core.ToolChoiceRequired, new(false)
	req.ResponseFormat = &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: json.RawMessage(`{}`)}
	req.Tools = []llm.ToolSpec{{Name: "f"}}
	p := serve(t, 200, `{"type":"message","content":[{"type":"compaction","content":"so far","signature":"s"}],"stop_reason":"compaction"}`)
	res, err := call(t, open(t, anthropic.Options{Model: compactor, BaseURL: p.URL, Thinking: 2_048}), req)
	must.True(t, err == nil && res.Compaction != nil, "got %+v, %v", res, err)
	if got, _ := json.Marshal(p.body()["compaction"]); string(got) != `{"type":"summarize"}` {
		t.Errorf("got %s", got)
	}
	compare.Equal(t, "the header", "compact-2026-09-04", p.Last().Header.Get("Anthropic-Beta"))
	for _, name := range []string{"stop_sequences", "tool_choice", "output_config"} {
		compare.True(t, p.body()[name] == nil, "got %s %v, want none", name, p.body()[name])
	}
	if p.body()["thinking"] == nil || p.body()["tools"] == nil {
		t.Errorf("got %s, want the thinking and the tools of other requests", p.raw())
	}
	p = sent(t, anthropic.Options{Model: compactor}, ask("hi"))
	if p.Last().Header.Get("Anthropic-Beta") != "" || strings.Contains(p.raw(), "compaction") {
		t.Errorf("another request has %s", p.raw())
	}
}

// Each form in which a compaction comes goes back as it came.
func TestCompactionGoesBack(t *testing.T) {
	t.Parallel()
	start := func(block string) string {
		return `{"type":"content_block_start","index":0,"content_block":` + block + `}`
	}
	delta := func(delta string) string {
		return `{"type":"content_block_delta","index":0,"delta":` + delta + `}`
	}
	const plain = `{"content":"so far \u003c3","signature":"s","type":"compaction"}`
	for name, tt := range map[string]struct{ answer, want string }{
		"whole":    {`{"type":"message","content":[` + plain + `],"stop_reason":"compaction","usage":{"iterations":[{"input_tokens":90,"output_tokens":5,"cache_read_input_tokens":10}]}}`, plain},
		"streamed": {compactionEvents(start(plain)), plain},
		"in deltas": {compactionEvents(start(`{"type":"compaction","content":null,"signature":""}`),
			delta(`{"type":"compaction_delta","content":"so far <3"}`), delta(`{"type":"signature_delta","signature":"s"}`)), plain},
		"null members": {compactionEvents(start(`{"type":"compaction","content":"so far <3","signature":"s","encrypted_content":null,"tool_changes":null}`)), plain},
		"tool changes": {compactionEvents(start(`{"type":"compaction","content":"so far <3","signature":"s","tool_changes":[]}`)),
			`{"content":"so far \u003c3","signature":"s","tool_changes":[],"type":"compaction"}`},
		"encrypted": {compactionEvents(start(`{"type":"compaction","content":"so far <3"}`), delta(`{"type":"compaction_delta","content":"so far <3","encrypted_content":"e"}`)),
			`{"content":"so far \u003c3","encrypted_content":"e","type":"compaction"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Compact = true
			res, err := call(t, open(t, anthropic.Options{Model: compactor, BaseURL: serve(t, 200, tt.answer).URL}), req)
			must.True(t, err == nil && res.Compaction != nil && res.Finish == core.FinishStop, "got %+v, %v", res, err)
			got := res.Compaction
			compare.Equal(t, "text, origin, type", []any{"so far <3", "anthropic/" + compactor, core.PartCompaction}, []any{got.Text, got.Origin, got.Type})
			compare.Equal(t, "usage", &core.Usage{InputTokens: 100, OutputTokens: 5, CacheReadTokens: 10}, res.Usage)
			p := sent(t, anthropic.Options{Model: compactor}, compacted(*res.Compaction))
			want := `[{"content":[` + tt.want + `],"role":"assistant"},{"content":[{"text":"kept","type":"text"}],"role":"assistant"},` +
				`{"content":[{"cache_control":{"type":"ephemeral"},"text":"hi","type":"text"}],"role":"user"}]`
			if got, _ := json.Marshal(p.body()["messages"]); string(got) != want {
				t.Errorf("got %s, want %s", got, want)
			}
			if got := p.Last().Header.Get("Anthropic-Beta"); got != "compact-2026-09-04" || p.body()["compaction"] != nil {
				t.Errorf("got the header %q, %s", got, p.raw())
			}
		})
	}
}

// A message that does not stay keeps the place of the cache's mark behind a compaction.
func TestCompactionAndCacheMarks(t *testing.T) {
	t.Parallel()
	req := compacted(core.Part{Text: "so far", Signature: "s"})
	req.Messages = append(req.Messages, llm.Message{Role: core.RoleAssistant, Content: "ok"}, llm.Message{Role: core.RoleUser, Content: "note", Passing: true})
	got, _ := json.Marshal(sent(t, anthropic.Options{Model: compactor}, req).body()["messages"])
	want := `{"content":[{"cache_control":{"type":"ephemeral"},"text":"ok","type":"text"}],"role":"assistant"}`
	compare.True(t, strings.Contains(string(got), want), "got %s, want %s in it", got, want)
}

// An answer that is no compaction is an error in plain words, with its usage.
func TestCompactionThatIsNone(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 4<<20)
	block := func(content string) string {
		return `{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":` + content + `,"signature":"s"}}`
	}
	whole := func(stop, content string) string {
		return fmt.Sprintf(`{"type":"message","stop_reason":%q,"usage":{"iterations":[{"input_tokens":90,"output_tokens":5,"cache_read_input_tokens":10}]},"content":[%s]}`, stop, content)
	}
	const one = `{"type":"compaction","content":"so far","signature":"s"}`
	for name, tt := range map[string]struct{ answer, says string }{
		"null":              {compactionEvents(`{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}`), "an empty compaction"},
		"empty":             {compactionEvents(`{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":""}}`), "an empty compaction"},
		"no block":          {compactionEvents(), "an empty compaction"},
		"two":               {whole("compaction", one+","+one), "2 compactions"},
		"cut off":           {whole("max_tokens", one), `stopped with "max_tokens"`},
		"an answer":         {whole("tool_use", `{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"f","input":{}}`), `stopped with "tool_use"`},
		"of another form":   {compactionEvents(block(`[]`)), "an empty compaction"},
		"4 MiB, streamed":   {compactionEvents(block(`"` + large + `"`)), "larger than 1 MiB"},
		"4 MiB, in a delta": {compactionEvents(block(`null`), `{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"`+large+`"}}`), "larger than 1 MiB"},
		"in many deltas":    {compactionEvents(append([]string{block(`"so far"`)}, slices.Repeat([]string{`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + large[:1<<19] + `"}}`}, 8)...)...), "larger than 1 MiB"},
		"a byte too large":  {whole("compaction", `{"type":"compaction","content":"`+large[:1<<20+1]+`","signature":"s"}`), "larger than 1 MiB"},
		"without a text":    {whole("compaction", `{"type":"compaction","signature":"s"}`), "an empty compaction"},
		"4 MiB, whole":      {whole("compaction", `{"type":"compaction","content":"so far","signature":"`+large+`"}`), "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Compact = true
			res, err := call(t, open(t, anthropic.Options{Model: compactor, BaseURL: serve(t, 200, tt.answer).URL}), req)
			e := llm.AsError(err)
			compare.True(t, e != nil && e.Kind == llm.KindInvalid && strings.Contains(e.Message, tt.says), "got %v, want %q", err, tt.says)
			compare.True(t, res.Usage != nil && res.Usage.InputTokens == 100 && res.Compaction == nil && res.Text == "" && len(res.ToolCalls) == 0, "got %+v, want the usage alone", res)
		})
	}
}

// The largest compaction is taken, and the caller may leave at each delta.
func TestLargestCompaction(t *testing.T) {
	t.Parallel()
	largest := strings.Repeat("x", llm.MaxCompaction)
	p := serve(t, 200, `{"type":"message","content":[{"type":"compaction","content":"so far","signature":"`+largest+`"}],"stop_reason":"compaction"}`)
	m, req := open(t, anthropic.Options{Model: compactor, BaseURL: p.URL}), ask("hi")
	req.Compact = true
	res := must.Get(call(t, m, req))(t)
	compare.True(t, res.Compaction != nil && res.Compaction.Signature == largest, "got")
	for left := range 2 {
		n := 0
		for _, err := range m.Stream(t.Context(), req) {
			if n++; err != nil || n > left {
				break
			}
		}
		compare.Equal(t, "number of deltas", left+1, n)
	}
}

// A refusal of a thought behind the compaction is that of the thought: the compaction goes again.
func TestThoughtRefusedBehindCompaction(t *testing.T) {
	t.Parallel()
	req := compacted(core.Part{Text: "so far", Signature: "s"})
	req.Messages[1].Parts = []core.Part{{Type: core.PartReasoning, Text: "hm", Signature: "t", Origin: "anthropic/" + compactor}}
	p := serve(t, 400, `{"error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `+"`signature` in `thinking` block"+`. The block is bound to a different conversation."}}`)
	if _, err := call(t, open(t, anthropic.Options{Model: compactor, BaseURL: p.URL}), req); !llm.IsKind(err, llm.KindInvalid) || len(p.Received()) != 2 {
		t.Errorf("got %v after %d requests, want two", err, len(p.Received()))
	}
	if !strings.Contains(p.raw(), `"so far"`) || strings.Contains(p.raw(), "hm") {
		t.Errorf("the second request is %s", p.raw())
	}
}

// All passes of an answer are billed, but the usage beside their list has the last one only.
func TestIterationsAreSummed(t *testing.T) {
	t.Parallel()
	const passes = `"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500},{"type":"message","input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":5,"cache_creation_input_tokens":7}]`
	const last = `"input_tokens":23000,"output_tokens":1000,"cache_read_input_tokens":5,"cache_creation_input_tokens":7`
	sum := &core.Usage{InputTokens: 203_012, OutputTokens: 4_500, CacheReadTokens: 5, CacheWriteTokens: 7}
	for name, tt := range map[string]struct {
		answer string
		want   *core.Usage
	}{
		"whole": {`{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{` + last + `,` + passes + `}}`, sum},
		"streamed": {stream(`{"type":"message_start","message":{"usage":{"input_tokens":23000,"output_tokens":1,"iterations":[{"type":"message","input_tokens":23000,"output_tokens":1}]}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{`+last+`,`+passes+`}}`, `{"type":"message_stop"}`), sum},
		"listed at the start only": {stream(`{"type":"message_start","message":{"usage":{`+last+`,`+passes+`}}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1000,"iterations":null}}`, `{"type":"message_stop"}`), sum},
		"odd": {`{"type":"message","content":[],"stop_reason":"end_turn","usage":{` + last + `,"iterations":"many"}}`,
			&core.Usage{InputTokens: 23_012, OutputTokens: 1_000, CacheReadTokens: 5, CacheWriteTokens: 7}},
		"negative": {`{"type":"message","content":[],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":1,"iterations":[{"input_tokens":-9,"output_tokens":2}]}}`,
			&core.Usage{InputTokens: 5, OutputTokens: 2}},
	} {
		res, err := call(t, open(t, anthropic.Options{BaseURL: serve(t, 200, tt.answer).URL}), ask("hi"))
		must.True(t, err == nil, "%s: %v", name, err)
		compare.Equal(t, name, tt.want, res.Usage)
	}
}
