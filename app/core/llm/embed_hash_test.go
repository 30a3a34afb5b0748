package llm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// vector returns the vector of one text.
func vector(t *testing.T, text string) []float32 {
	t.Helper()
	list, err := llm.HashEmbedder{}.Embed(t.Context(), []string{text})
	must.True(t, err == nil && len(list) == 1, "%.40q: got %d vectors, error %v", text, len(list), err)
	return list[0]
}

// Texts that share words, forms of words or CJK characters are nearer to each other
// than to texts that do not.
func TestHashingFindsWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, query, near, far string }{
		{"words", "when is the inspection?", "The inspection is on Friday.", "My favorite tea is green tea."},
		{"upper case", "INSPECTION", "the inspection", "the invitation"},
		{"another form", "inspecting pumps", "the pump was inspected", "the cat was fed"},
		{"misspelled", "inspektsion of the suppplier", "The supplier's inspection is on Friday.", "The cat sleeps."},
		{"common words do not count", "what is the address of the supplier", "supplier address", "what is the name of the cat"},
		{"German", "Wann ist die Prüfung der Pumpe?", "Die Pumpenprüfung ist am Freitag.", "Grüner Tee schmeckt mir."},
		{"Chinese", "水泵什么时候检查", "三号车间的水泵星期五检查", "我喜欢绿茶"},
		{"Japanese", "点検はいつですか", "ポンプの点検は金曜日です", "緑茶が好きです"},
		{"Korean", "점검은 언제입니까", "펌프 점검은 금요일입니다", "녹차를 좋아합니다"},
		{"full width", "ＡＢＣ１２３", "abc123", "xyz789"},
		{"composed or not", "cafe\u0301 crème", "café cre\u0300me", "tea with milk"},
		{"numbers", "invoice 4711", "4711 is the invoice of May", "invoice 8152"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := vector(t, tt.query)
			near, far := llm.DotProduct(q, vector(t, tt.near)), llm.DotProduct(q, vector(t, tt.far))
			compare.True(t, near >= far+0.05, "got %.3f for %q, and %.3f for %q; want the first to be far more", near, tt.near, far, tt.far)
		})
	}
}

// Every text has a vector of length 1, always the same; the texts are left alone.
func TestHashingIsSound(t *testing.T) {
	t.Parallel()
	texts := []string{"", " ", "!!!", "...", "\x00\xff", "a", "the", "水", "👍", strings.Repeat("x", 33_000), strings.Repeat("a b ", 9_000), "one\ntwo"}
	before := append([]string(nil), texts...)
	first := must.Get(llm.HashEmbedder{}.Embed(t.Context(), texts))(t)
	second, err := llm.HashEmbedder{}.Embed(t.Context(), texts)
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Errorf("the second time: error %v, difference %s", err, diff)
	}
	for i, v := range first {
		if d := llm.DotProduct(v, v); len(v) != llm.HashEmbedder.Dimension(llm.HashEmbedder{}) || d < 0.99 || d > 1.01 {
			t.Errorf("%.20q: got a vector that is not sound", texts[i])
		}
	}
	compare.Equal(t, "the texts were changed", before, texts)
	got := llm.DotProduct(vector(t, "!!!"), vector(t, "???"))
	compare.True(t, got <= 0.5, "two texts of signs: got %.2f, want them apart", got)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := (llm.HashEmbedder{}).Embed(ctx, texts); err == nil || err.Error() != "enough" {
		t.Errorf("canceled: got error %v, want its cause", err)
	}
}

// What is stored must not change by accident: another vector needs another name.
func TestHashingStaysTheSame(t *testing.T) {
	t.Parallel()
	v := vector(t, "The inspection of pump 3 is on Friday. 水泵检查")
	var sum float64
	for i, f := range v {
		sum += float64(f) * float64(i+1)
	}
	if got, want := math.Round(sum*1e4)/1e4, -225.0602; got != want && llm.HashingModel == "hashing-384-v1" {
		t.Errorf("got the sum %v, want %v: change HashingModel when vectors change", got, want)
	}
}
