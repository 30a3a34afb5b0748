package tokens_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
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
