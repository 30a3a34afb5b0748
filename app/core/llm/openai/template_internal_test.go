package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
	"bobbin/tests/seed"
)

// read returns what the chunks emit, and the state and the error behind them.
func read(chunks []string, parsed bool) string {
	var got strings.Builder
	a := &answer{Answer: providerhttp.Answer{Refusal: func(text []byte) *llm.Error { return &llm.Error{Message: string(text)} }, Emit: func(d llm.Delta) bool {
		fmt.Fprintf(&got, "%q %q %+v\n", d.Text, d.Reasoning, d.ToolCall)
		return true
	}}}
	for _, chunk := range chunks {
		if parsed {
			a.misses = maxMisses
		}
		err := a.handleEvent([]byte(chunk))
		if parsed {
			a.template = template{}
		}
		if err != nil {
			return fmt.Sprintf("%s%v", got.String(), err)
		}
	}
	return fmt.Sprintf("%s%v %q %q %v", got.String(), a.usage, a.model, a.finish, a.hasContent)
}

// around are chunks of servers, and of nobody, with a text at %s.
func around() []string {
	return []string{
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"f","choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aX3"}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","service_tier":"default","system_fingerprint":"f","choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":""}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"obfuscation":"`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"obfuscation":"a","error":"b"}`,
		`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":"stop"}]}`,
		`{"choices":[{"index":0,"delta":{"role":"assistant","content":%s},"finish_reason":""}],"model":"other"}`,
		`{"choices":[{"index":0,"delta":{"content":%s,"content":"b"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"b","content":%s}}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s,"CONTENT":"b"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s,"reasoning":"b"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"b"},"logprobs":{"content":%s}}]}`,
		`{"choices":[{"index":0,"logprobs":{"content":%s},"delta":{"content":"b"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s},"usage":{"prompt_tokens":1}}],"usage":{"prompt_tokens":2}}`,
		`{"choices":[{"index":0,"delta":{"content":%s}},{"index":1,"delta":{"content":"b"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s},"error":{"message":"b"}}]}`,
		`{"error":null,"choices":[{"index":0,"delta":{"content":%s}}]}`,
		`{"object":"error","choices":[{"index":0,"delta":{"content":%s}}]}`,
		`{"choices":[{"index":0,"message":{"content":%s}}]}`,
		`{"choices":[{"index":0,"delta":{"content":%s`,
		`{"x":"\"content\":","choices":[{"index":0,"delta":{"content":%s}}]}`,
	}
}

// Whatever chunks follow each other, the template gives byte for byte what the parser gives alone.
func TestTemplateReadsWhatTheParserReads(t *testing.T) {
	t.Parallel()
	literals := []string{
		`"b"`, `"a word "`, `""`, `null`, `"a\nb"`, `"a\"b"`, `"\\"`, `"\"`, `"\u00e4\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83d\u0041"`, "\"\xff\"", "\"\xed\xa0\xbd\"",
		"\"\xf0\x9f\x98\x80\"", "\"\x00\"", "\"a\nb\"", "\"\u2028\"", `"<&>"`, `"\/"`, `"\x"`, `"\u12"`, `"a"b"`, `"a","content":"b"`, `"a","reasoning":"b"`, `"a"},"finish_reason":"stop","x":{"y":"b"`,
		`"probe"`, `"\"content\":\"b\""`, `"\"obfuscation\":\""`, `"obfuscation":""`, ` "a" `, `1`, `[{"type":"text","text":"b"}]`, `"a" "b"`, `"" "b"`, `{"a":"b"}`,
	}
	seed.Check(t, func(t *rapid.T) {
		literal := rapid.OneOf(rapid.SampledFrom(literals), rapid.Custom(func(t *rapid.T) string {
			raw, _ := json.Marshal(rapid.String().Draw(t, "text")) // strings have no error
			return string(raw)
		}), rapid.Custom(func(t *rapid.T) string {
			return `"` + string(rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(t, "bytes")) + `"`
		}))
		chunk := rapid.Custom(func(t *rapid.T) []string {
			frame := rapid.SampledFrom(around()).Draw(t, "frame")
			var chunks []string
			for range rapid.IntRange(1, 4).Draw(t, "count") {
				chunks = append(chunks, strings.Replace(frame, "%s", literal.Draw(t, "literal"), 1))
			}
			return chunks
		})
		var chunks []string
		for range rapid.IntRange(1, 4).Draw(t, "frames") {
			chunks = append(chunks, chunk.Draw(t, "chunks")...)
		}
		if diff := cmp.Diff(read(chunks, true), read(chunks, false)); diff != "" {
			t.Fatalf("chunks %q (-parser +template):\n%s", chunks, diff)
		}
	})
}

// FuzzTemplate: the same for any two chunks.
func FuzzTemplate(f *testing.F) {
	for _, frame := range around() {
		f.Add(strings.Replace(frame, "%s", `"a"`, 1), strings.Replace(frame, "%s", `"\ud83d\ude00 b"`, 1))
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		chunks := []string{first, second, first}
		if diff := cmp.Diff(read(chunks, true), read(chunks, false)); diff != "" {
			t.Fatalf("chunks %q (-parser +template):\n%s", chunks, diff)
		}
	})
}

// A chunk that brings text and nothing else is a template of the next.
func TestTemplateFitsTheNextChunk(t *testing.T) {
	t.Parallel()
	const frame = `{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":%s},"logprobs":null,"finish_reason":null}],"usage":null}`
	template := newTemplate([]byte(strings.Replace(frame, "%s", `"Hel"`, 1)))
	compare.Equal(t, "got: want the text by the template", "lö \"\n", template.text([]byte(strings.Replace(frame, "%s", `"l\u00f6 \"\n"`, 1))))
}
