package responses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
)

// summarized is an item of compaction.
const summarized = `{"id":"cmp_1","type":"compaction","encrypted_content":"blob"}`

const billed = `"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":10},"output_tokens":5}`

// finished is the event that ends an answer with the items.
func finished(status string, items ...string) string {
	return fmt.Sprintf(`{"type":"response.%s","response":{"object":"response","status":"%s","model":"m","output":[%s],%s}}`, status, status, strings.Join(items, ","), billed)
}

// compacted is a prompt that begins with a compaction and has reasoning behind it.
func compacted() llm.Request {
	return llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Parts: []core.Part{{Type: core.PartCompaction, Name: "cmp_1", Signature: "blob"}}},
		{Role: core.RoleAssistant, Content: "kept", Parts: []core.Part{{Type: core.PartReasoning, Name: "rs_1", Signature: "blob-1", Origin: "openai/gpt-6"}}},
		{Role: core.RoleUser, Content: "hi"},
	}}
}

// compact asks the model for a compaction.
func compact(t *testing.T, answers ...http.HandlerFunc) (*server, llm.Response, error) {
	t.Helper()
	s := serve(t, answers...)
	req := ask("hi")
	req.Tools, req.ToolChoice, req.ReasoningEffort, req.Compact = []llm.ToolSpec{{Name: "f"}}, core.ToolChoiceRequired, "low", true
	res, err := collect(t, open(t, s, responses.Options{}), req)
	return s, res, err
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"streamed": stream(`{"type":"response.output_item.added","output_index":0,"item":{"id":"cmp_1","type":"compaction"}}`,
			`{"type":"response.compaction.compacting","output_index":0,"item_id":"cmp_1"}`, done(0, summarized), finished("completed", summarized)),
		"at the end":       stream(finished("completed", summarized)),
		"whole":            refuse(200, `{"object":"response","status":"completed","output":[`+summarized+`],`+billed+`}`),
		"beside a message": stream(done(0, said1), done(1, summarized), finished("completed", said1, summarized)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, res, err := compact(t, answer)
			want := llm.Response{Finish: core.FinishStop, Usage: &core.Usage{InputTokens: 100, OutputTokens: 5, CacheReadTokens: 10},
				Compaction: &core.Part{Type: core.PartCompaction, Name: "cmp_1", Signature: "blob", Origin: "openai/gpt-6"}}
			if diff := cmp.Diff(want, res); diff != "" || err != nil {
				t.Fatalf("got %v (-want +got):\n%s", err, diff)
			}
			got := s.requests[0].body
			if input, want := toJSON(t, got["input"]), `[{"content":[{"text":"hi","type":"input_text"}],"role":"user"},{"type":"compaction_trigger"}]`; input != want {
				t.Errorf("got the input %s, want %s", input, want)
			}
			if got["store"] != false || got["tool_choice"] != nil || got["tools"] == nil || got["reasoning"] == nil {
				t.Errorf("got %s", s.requests[0].raw)
			}
		})
	}
}

func TestCompactionGoesBack(t *testing.T) {
	t.Parallel()
	want := `[{"encrypted_content":"blob","id":"cmp_1","type":"compaction"},{"encrypted_content":"blob-1","id":"rs_1","summary":[],"type":"reasoning"},` +
		`{"content":[{"annotations":[],"text":"kept","type":"output_text"}],"role":"assistant","type":"message"},{"content":[{"text":"hi","type":"input_text"}],"role":"user"}]`
	if got := toJSON(t, sent(t, responses.Options{}, compacted()).body["input"]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	req := compacted()
	req.Messages[0].Parts[0].Name = ""
	if got := sent(t, responses.Options{}, req).raw; strings.Contains(got, `"id":""`) {
		t.Errorf("got %s, want no id", got)
	}
}

// An answer that is no compaction is an error in plain words, with its usage.
func TestCompactionThatIsNone(t *testing.T) {
	t.Parallel()
	large := fmt.Sprintf(`{"id":"cmp_1","type":"compaction","encrypted_content":"%s"}`, strings.Repeat("x", 3<<20))
	call := `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"no item":         {stream(finished("completed")), "an empty compaction"},
		"an empty item":   {stream(finished("completed", `{"id":"cmp_1","type":"compaction","encrypted_content":""}`)), "an empty compaction"},
		"an answer":       {stream(done(0, said1), finished("completed", said1)), "an empty compaction"},
		"a tool call":     {stream(done(0, call), finished("completed", call)), "an empty compaction"},
		"two":             {stream(finished("completed", summarized, summarized)), "2 compactions"},
		"cut off":         {stream(finished("incomplete", summarized)), `stopped with "length"`},
		"3 MiB, streamed": {stream(done(0, large), finished("completed", large)), "larger than 1 MiB"},
		"3 MiB, once":     {stream(done(0, large), finished("completed")), "larger than 1 MiB"},
		"3 MiB, whole":    {refuse(200, `{"object":"response","status":"completed","output":[`+large+`],`+billed+`}`), "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, res, err := compact(t, tt.answer)
			if e := llm.AsError(err); e == nil || e.Kind != llm.KindInvalid || !strings.Contains(e.Message, tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if diff := cmp.Diff(llm.Response{Usage: &core.Usage{InputTokens: 100, OutputTokens: 5, CacheReadTokens: 10}}, res); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{
		"streamed": stream(done(0, large)),
		"whole":    refuse(200, `{"output":[`+large+`]}`),
		"no JSON":  stream(done(0, large) + "}"),
	} {
		if _, _, err := compact(t, answer); !llm.IsKind(err, llm.KindTruncated) {
			t.Errorf("3 MiB that break off, %s: got %v", name, err)
		}
	}
	if _, _, err := compact(t, stream(done(0, strings.Repeat(large, 3)))); !llm.IsKind(err, llm.KindInvalid) {
		t.Errorf("9 MiB: got %v", err)
	}
}

// Where it is not clear whether reasoning or the compaction is refused, it is the compaction.
func TestCompactionRefused(t *testing.T) {
	t.Parallel()
	alone := compacted()
	alone.Messages = append(alone.Messages[:1:1], alone.Messages[2])
	report := func(message, code string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":%q}}`, message, code)
	}
	for name, tt := range map[string]struct {
		req      llm.Request
		answer   http.HandlerFunc
		want     llm.ErrorKind
		requests int
	}{
		"it alone":         {alone, refuse(400, report("no", "invalid_encrypted_content")), llm.KindCompactionRefused, 1},
		"by words":         {alone, refuse(400, report("The encrypted content could not be verified.", "")), llm.KindCompactionRefused, 1},
		"it is named":      {compacted(), refuse(400, report("The encrypted content for item cmp_1 could not be verified.", "invalid_encrypted_content")), llm.KindCompactionRefused, 1},
		"nothing is named": {compacted(), refuse(400, report("Encrypted content could not be decrypted.", "invalid_encrypted_content")), llm.KindCompactionRefused, 1},
		"item is unknown":  {compacted(), refuse(400, report("Invalid value: 'compaction'. Supported values are: 'message'.", "invalid_value")), llm.KindCompactionRefused, 1},
		"within a stream":  {compacted(), stream(`{"type":"error","error":` + report("no", "invalid_encrypted_content")[9:]), llm.KindCompactionRefused, 1},
		"reasoning":        {compacted(), refuse(400, report("The encrypted content for item 'rs_1' could not be verified.", "invalid_encrypted_content")), llm.KindCompactionRefused, 2},
		"trigger":          {compacted(), refuse(400, report("compaction_trigger must be the final input item.", "invalid_value")), llm.KindInvalid, 1},
		"another cause":    {compacted(), refuse(400, report("no", "invalid_value")), llm.KindInvalid, 1},
		"busy":             {compacted(), refuse(503, report("the compaction service is down", "")), llm.KindOverloaded, 1},
		"no compaction":    {ask("hi"), refuse(400, report("no", "invalid_encrypted_content")), llm.KindInvalid, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tt.answer)
			_, err := collect(t, open(t, s, responses.Options{}), tt.req)
			if e := llm.AsError(err); e == nil || e.Kind != tt.want || len(s.requests) != tt.requests {
				t.Errorf("got %v after %d requests, want %s after %d", err, len(s.requests), tt.want, tt.requests)
			}
		})
	}
}

// Reasoning behind the compaction that is refused by its name is left out, and the compaction stays.
func TestReasoningRefusedBehindCompaction(t *testing.T) {
	t.Parallel()
	s := serve(t, refuse(400, `{"error":{"message":"The encrypted content for item rs_1 could not be verified.","code":"invalid_encrypted_content"}}`), fine)
	res, err := collect(t, open(t, s, responses.Options{}), compacted())
	if err != nil || res.Text != "ok" || res.Dropped == nil || len(s.requests) != 2 {
		t.Fatalf("got %+v, %v after %d requests", res, err, len(s.requests))
	}
	if got := s.requests[1].raw; !strings.Contains(got, "cmp_1") || strings.Contains(got, "rs_1") {
		t.Errorf("got %s", got)
	}
}
