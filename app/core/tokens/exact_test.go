package tokens_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
	"github.com/tiktoken-go/tokenizer/codec"
	"pgregory.net/rapid"

	"bobbin/app/core/tokens"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

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

// shared is one counter and one second tokenizer for the tests that count a lot.
var shared = sync.OnceValues(func() (*tokens.Counter, *codec.Codec) {
	c := tokens.NewCounter()
	return c, codec.NewCl100kBase()
})

// faulty finds where the second tokenizer is known to be wrong, for its expression
// engine is: it does not let \s*[\r\n]+ run over blank space between line breaks, so
// that "  \n  \n" is two tokens for it and one (31879) for OpenAI; and it drops DEL.
var faulty = regexp.MustCompile(`[\r\n][\t\v\f\x{85}\pZ]+[\r\n]|\x7f`)

// second counts with the second tokenizer, and returns false where that is wrong.
func second(tb testing.TB, c *codec.Codec, text string) (int, bool) {
	tb.Helper()
	if faulty.MatchString(text) {
		return 0, false
	}
	n := must.Get(c.Count(text))(tb)
	return n, true
}

// TestRow12HardTextsAreExact: runs without a break are not only fast, their count is
// exact: 0 % off where 1 % is allowed.
func TestRow12HardTextsAreExact(t *testing.T) {
	t.Parallel()
	counter, codec := shared()
	ref := library(t)
	for _, k := range hardTexts() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 2, 7, 100, 255, 256, 257, 1000, 4095, 4096, 4097, 5000} {
				text := k.make(size)
				compare.Equal(t, fmt.Sprintf("%d bytes: want as tiktoken-go", size), ref.count(text), counter.Text(text))
			}
			text := k.make(100_000) // minutes with tiktoken-go alone
			if want, ok := second(t, codec, text); ok && counter.Text(text) != want {
				t.Errorf("100 kB: got %d, want %d as the second tokenizer", counter.Text(text), want)
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
	counter, codec := shared()
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
		if want, ok := second(t, codec, text); ok && got != want {
			rt.Fatalf("Text(%q): got %d, want %d as the second tokenizer", text, got, want)
		}
		long := strings.Repeat(text, rapid.IntRange(1, 40).Draw(rt, "repeat")) // minutes with tiktoken-go
		if want, ok := second(t, codec, long); ok && counter.Text(long) != want {
			rt.Fatalf("Text of %d bytes: got %d, want %d as the second tokenizer", len(long), counter.Text(long), want)
		}
	})
}

// White space before a character that is a token of its own: the last blank is a pre-token
// of its own, too.
func TestTextBlanksAreExact(t *testing.T) {
	t.Parallel()
	counter, _ := shared()
	ref := library(t)
	for _, text := range []string{
		"\u00a0 \u16800", "\n \u16801", "\u2003\u00a0\u16801\u00a0 \u1680", "x\u1680\u1680\u1680\U000142005",
		strings.Repeat("\u1680", 1365) + "\u1680\u00a0 1", strings.Repeat("\u1680 ", 5000) + "7",
	} {
		compare.Equal(t, fmt.Sprintf("Text(%.20q): want as tiktoken-go", text), ref.count(text), counter.Text(text))
	}
}
