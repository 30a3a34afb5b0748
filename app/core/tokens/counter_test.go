package tokens_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
)

func newCounter(tb testing.TB) *tokens.Counter {
	tb.Helper()
	c := tokens.NewCounter()
	return c
}

// TestTextKnownCounts holds the counter against counts that OpenAI publishes
// (cookbook, "How to count tokens with tiktoken"). W4
func TestTextKnownCounts(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for text, want := range map[string]int{
		"":                             0,
		"tiktoken is great!":           6,
		"antidisestablishmentarianism": 6,
		"2 + 2 = 4":                    7,
		"お誕生日おめでとう":                    9,
		"hello world":                  2,
	} {
		compare.Equal(t, fmt.Sprintf("Text(%q)", text), want, counter.Text(text))
	}
}

// TestRow21VocabularyIsInTheProgram: nothing is loaded from the network, not at the
// first count either. It runs before the parallel tests.
func TestRow21VocabularyIsInTheProgram(t *testing.T) {
	before := http.DefaultTransport
	defer func() { http.DefaultTransport = before }()
	http.DefaultTransport = refusing{t}
	t.Setenv("TIKTOKEN_CACHE_DIR", t.TempDir()) // where the library would find a download
	compare.Equal(t, "tokens", 6, newCounter(t).Text("the first count of this process"))
}

// refusing is a network that must not be used.
type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.t.Errorf("%s was asked for", req.URL)
	return nil, errors.New("no network")
}

// TestTextInvalidUTF8: a bad byte counts as the U+FFFD that ingestion makes of it.
func TestTextInvalidUTF8(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	for _, text := range []string{"\xff", "a\xffb", "\xff\xfe\xfd", "ok \xe4\xb8", "\xed\xa0\x80", strings.Repeat("x\xc3", 5000)} {
		replaced := string([]rune(text))
		compare.Equal(t, fmt.Sprintf("Text(%.20q): want as with U+FFFD", text), counter.Text(replaced), counter.Text(text))
	}
}

// B8: 4 tokens of overhead and the tool calls; a list adds 3.
func TestMessage(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	call := core.ToolCall{ID: "call_1", Name: "calculator", Arguments: `{"expression":"6*7"}`}
	oneCall := tokens.ToolCallOverhead + counter.Text(call.Name) + counter.Text(call.Arguments)
	tests := []struct {
		name string
		msg  core.Message
		want int
	}{
		{"empty", core.Message{Role: core.RoleUser}, 4},
		{"text", core.Message{Role: core.RoleUser, Content: "hello world"}, 4 + 2},
		{"tool calls", core.Message{Role: core.RoleAssistant, Content: "hello world", ToolCalls: []core.ToolCall{call, call}}, 4 + 2 + 2*oneCall},
		{"tool result", core.Message{Role: core.RoleTool, Content: "42", ToolCallID: "call_1", ToolName: "calculator"}, 4 + 1},
		{"text part is the content", core.Message{Content: "hello world", Parts: []core.Part{{Type: "text", Text: "hello world"}}}, 4 + 2},
		{"reasoning that is not sent back", core.Message{Parts: []core.Part{{Type: "reasoning", Text: "hello world", Signature: "s"}}}, 4},
		{"reasoning without a signature", core.Message{Parts: []core.Part{{Type: "reasoning", Text: "hello world"}}, ToolCalls: []core.ToolCall{call}}, 4 + oneCall},
		{"reasoning that is sent back", core.Message{
			Parts: []core.Part{{Type: "reasoning", Text: "hello world", Signature: "s"}}, ToolCalls: []core.ToolCall{call},
		}, 4 + 2 + oneCall},
		{"reasoning that is hidden in its signature", core.Message{
			Parts: []core.Part{{Type: "reasoning", Signature: strings.Repeat("s", 1600)}}, ToolCalls: []core.ToolCall{call},
		}, 4 + 300 + oneCall},
		{"compaction", core.Message{Parts: []core.Part{{Type: core.PartCompaction, Text: "hello world", Signature: strings.Repeat("s", 1600), Name: "cmp_1"}}}, 4 + 2},
		{"compaction that nobody can read", core.Message{Parts: []core.Part{{Type: core.PartCompaction, Signature: strings.Repeat("s", 1600), Name: "cmp_1"}}}, 4 + 400},
		{"image", core.Message{Parts: []core.Part{{Type: "image", BlobID: "b"}}}, 4 + tokens.ImageTokens},
		{"file", core.Message{Parts: []core.Part{{Type: "file", Name: "hello world"}}}, 4 + 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compare.Equal(t, "Message", tt.want, counter.Message(tt.msg))
			same := llm.Message{Role: tt.msg.Role, Content: tt.msg.Content, Parts: tt.msg.Parts, ToolCalls: tt.msg.ToolCalls}
			compare.Equal(t, "Prompted", tt.want, tokens.Prompted(counter.Text, same))
		})
	}
}

// W4: the tool definitions count.
func TestTools(t *testing.T) {
	t.Parallel()
	counter := newCounter(t)
	compare.Equal(t, "Tools of nothing", 0, counter.Tools(nil))
	spec := llm.ToolSpec{Name: "calculator", Description: "hello world", Parameters: json.RawMessage(`{"type":"object"}`)}
	want := tokens.ToolOverhead + counter.Text("calculator") + 2 + counter.Text(`{"type":"object"}`)
	compare.Equal(t, "Tools", 2*want, counter.Tools([]llm.ToolSpec{spec, spec}))
}

// OpenAI's models read PDFs from gpt-4o on; those of Anthropic that see images do.
func TestReadsPDF(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"gpt-4o-mini": true, "gpt-5.1": true, "claude-sonnet-4-5": true, "gpt-4-turbo-2024-04-09": false, "gpt-4-vision-preview": false,
		"o3-mini": false, "claude-2.1": false, "unheard-of": false,
	} {
		compare.Equal(t, name, want, tokens.ReadsPDF(name))
	}
}
