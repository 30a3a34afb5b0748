package tokens_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/pkoukk/tiktoken-go-loader/assets"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
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

// kind makes a text of so many bytes, or a few less to end at a character.
type kind struct {
	name string
	make func(size int) string
}

// hardTexts are the texts that are slow or large with other tokenizers: runs
// without a break above all.
func hardTexts() []kind {
	return []kind{
		{"one letter", repeat("a")},
		{"one capital", repeat("Z")},
		{"spaces", repeat(" ")},
		{"newlines", repeat("\n")},
		{"spaces and newlines", repeat("  \n")},
		{"tabs", repeat("\t")},
		{"unspaced Chinese", chinese},
		{"one Chinese character", repeat("我")},
		{"base64", encoded},
		{"letters at random", random("abcdefghijklmnopqrstuvwxyz")},
		{"digits", random("0123456789")},
		{"punctuation", random("!?.,;:-=+*/#$%&()[]{}<>@^_|~")},
		{"a ruler", repeat("=")},
		{"emoji", random("😀🎉👍🏽❤️🚀👩‍💻🇩🇪🤷")},
		{"combining marks", repeat("e\u0301\u0323\u0302")},
		{"marks alone", repeat("\u0301")},
		{"wide spaces", repeat("\u2003")},
		{"invalid UTF-8", repeat("\xff\xfe")},
		{"zero bytes", repeat("\x00")},
		{"rare characters and digits", repeat("\u9fff1")},
		{"letters and digits", repeat("q7")},
		{"Arabic", repeat("السلامعليكم")},
		{"Thai", repeat("สวัสดีครับ")},
		{"contractions", repeat("'s're'LL")},
		{"English", english},
		{"source text", repeat("func (m *merger) offer(i int32) {\n\trank := m.rankOf(i)\n\tif rank != 0x7f3a && rank >= 1024 {\n\t\treturn\n\t}\n}\n\n")},
		{"JSON", repeat(`{"id":"0199a3f2-7c1e-7b3a","value":-12.5e3,"ok":true,"tags":["alpha","beta"],"text":"caf\u00e9"},`)},
	}
}

func repeat(unit string) func(int) string {
	return func(size int) string { return whole(strings.Repeat(unit, size/len(unit)+1), size) }
}

func random(alphabet string) func(int) string {
	letters := []rune(alphabet)
	return func(size int) string {
		r := seed.Fixed(1, 2)
		var b strings.Builder
		for b.Len() < size {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return whole(b.String(), size)
	}
}

func chinese(size int) string {
	r := seed.Fixed(3, 4)
	var b strings.Builder
	for b.Len() < size {
		b.WriteRune(rune(0x4e00 + r.IntN(0x9fa5-0x4e00)))
	}
	return whole(b.String(), size)
}

func encoded(size int) string {
	r := seed.Fixed(5, 6)
	raw := make([]byte, size)
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(raw)[:size]
}

func english(size int) string {
	return repeat("Call me Ishmael. Some years ago — never mind how long precisely — having little or no money in my purse, " +
		"and nothing particular to interest me on shore, I thought I'd sail about a little and see the watery part of the world.\n\n")(size)
}

// whole cuts s to at most size bytes at the end of a character; a byte that is
// none ends anywhere.
func whole(s string, size int) string {
	for size > 0 && size < len(s) && s[size]&0xc0 == 0x80 {
		size--
	}
	return s[:min(size, len(s))]
}

// reference is tiktoken-go as it comes: exact, and quadratic on long runs.
type reference struct{ encoder *tiktoken.Tiktoken }

func (r reference) count(text string) int { return len(r.encoder.EncodeOrdinary(text)) }

var loadLibrary = sync.OnceValues(func() (*tiktoken.Tiktoken, error) {
	tiktoken.SetBpeLoader(loader.NewOfflineLoader())
	return tiktoken.GetEncoding(tiktoken.MODEL_CL100K_BASE)
})

func library(tb testing.TB) reference {
	tb.Helper()
	encoder := must.Get(loadLibrary())(tb)
	return reference{encoder: encoder}
}

// shared is one counter for the tests that count a lot.
var shared = sync.OnceValue(tokens.NewCounter)

// TestRow12HardTextsAreExact: runs without a break are not only fast, their count is
// exact: 0 % off where 1 % is allowed.
func TestRow12HardTextsAreExact(t *testing.T) {
	t.Parallel()
	counter := shared()
	ref := library(t)
	for _, k := range hardTexts() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 7, 100, 255, 256, 257, 1000, 4095, 4096, 4097, 5000} {
				text := k.make(size)
				compare.Equal(t, fmt.Sprintf("%d bytes: want as tiktoken-go", size), ref.count(text), counter.Text(text))
			}
		})
	}
}

// fragments are what the generated texts are made of.
var fragments = []string{
	"a", "Word", " word", "the", "'s", "'LL", "'\u017f", "'", "\"", " ", "  ", "\t", "\n", "\r\n", "\n\n", "\u00a0", "\u2003", "\u2028", "\u0085", "\v",
	"1", "12", "1234", "Ⅷ", "½", "٣", "我们", "你", "日本語", "한국어", "é", "e\u0301", "ß", "İ", "ǅ", "ʰ", "😀", "👩\u200d💻", "\u200b", "\ufeff", "\ufffd",
	"!", "...", "=>", "{}", "_", "-", "/", "\x00", "\x7f", "<|endoftext|>", "https://example.com/a?b=c", "func main() {", "}\n", "ААА", "שלום", "สวัสดี", "\U0010ffff",
}

// TestTextExactProperty: whatever the text, the count is tiktoken-go's (W4, C1).
func TestTextExactProperty(t *testing.T) {
	t.Parallel()
	counter := shared()
	ref := library(t)
	seed.Check(t, func(rt *rapid.T) {
		var b strings.Builder
		for b.Len() < 3000 {
			piece := rapid.OneOf(rapid.SampledFrom(fragments), rapid.StringN(0, 8, -1)).Draw(rt, "piece")
			times := rapid.OneOf(rapid.Just(1), rapid.Just(1), rapid.IntRange(1, 600)).Draw(rt, "times")
			b.WriteString(strings.Repeat(piece, times))
			if rapid.IntRange(0, 19).Draw(rt, "stop") == 0 {
				break
			}
		}
		text := whole(b.String(), 3000)
		got := counter.Text(text)
		if want := ref.count(text); got != want {
			rt.Fatalf("Text(%q): got %d, want %d as tiktoken-go", text, got, want)
		}
	})
}

// White space before a character that is a token of its own: the last blank is a pre-token
// of its own, too.
func TestTextBlanksAreExact(t *testing.T) {
	t.Parallel()
	counter := shared()
	ref := library(t)
	for _, text := range []string{
		"\u00a0 \u16800", "\n \u16801", "\u2003\u00a0\u16801\u00a0 \u1680", "x\u1680\u1680\u1680\U000142005",
		strings.Repeat("\u1680", 1365) + "\u1680\u00a0 1", strings.Repeat("\u1680 ", 5000) + "7",
	} {
		compare.Equal(t, fmt.Sprintf("Text(%.20q): want as tiktoken-go", text), ref.count(text), counter.Text(text))
	}
}

var update = flag.Bool("update", false, "write the embedded vocabulary")

// vocabularySHA256 is the digest that OpenAI publishes with the file
// (tiktoken_ext/openai_public.py).
const vocabularySHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

// The embedded vocabulary is the published one.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	published := must.Get(assets.Assets.ReadFile("cl100k_base.tiktoken"))(t)
	sum := sha256.Sum256(published)
	if got := hex.EncodeToString(sum[:]); got != vocabularySHA256 {
		t.Fatalf("the vocabulary of tiktoken-go-loader has the SHA-256 %s, want %s", got, vocabularySHA256)
	}
	type token struct {
		rank int
		text []byte
	}
	var list []token
	for line := range strings.Lines(string(published)) {
		encoded, rank, _ := strings.Cut(strings.TrimSpace(line), " ")
		text := must.Get(base64.StdEncoding.DecodeString(encoded))(t)
		n := must.Get(strconv.Atoi(rank))(t)
		list = append(list, token{n, text})
	}
	slices.SortFunc(list, func(a, b token) int { return cmp.Compare(a.rank, b.rank) })
	var want []byte
	for i, tok := range list {
		must.True(t, tok.rank == i && len(tok.text) <= 255, "token %d has the rank %d and %d bytes", i, tok.rank, len(tok.text))
		want = append(append(want, byte(len(tok.text))), tok.text...)
	}
	if *update {
		must.Do(t, os.WriteFile("data/cl100k_base.bin", want, 0o644))
		return
	}
	compare.Equal(t, "data/cl100k_base.bin is not the published vocabulary; write it with: go test ./app/core/tokens -run TestVocabulary -update", string(want), tokens.VocabularyData())
}
