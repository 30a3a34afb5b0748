package searchtext_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func ask(t *testing.T, text string) searchtext.Question {
	t.Helper()
	q, err := searchtext.ParseQuestion(text)
	must.True(t, err == nil, "%q: %v", text, err)
	return q
}

// Words of one stem are one word, in the language of the text.
func TestStems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, stems string
		length      int
	}{
		{"The pumps were running", "_wpump _wrun", 2},
		{"Die Pumpen und die Ventile sind geprüft", "_wpump _wventil _wgepruft", 3},
		{"Größen", "_wgross", 1},
		{"水泵压力 E11000 utf8texts", "", 5},
		{"насоса", "", 1},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			d := searchtext.Text(tt.text)
			got := strings.Join(d.Stems, " ")
			compare.Equal(t, "stems, length", []any{tt.stems, tt.length}, []any{got, d.Length})
		})
	}
}

// How often a text has each word of a question.
func TestQuestionCounts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		question, text string
		want           []int
	}{
		{"Where are the pumps?", "The pump, a pump and its pumping", []int{3}},
		{"Pumpen", "Wir haben die Pumpe und noch eine Pumpe", []int{2}},
		{"to be or not", "To be, or not to be", []int{2, 2, 1, 1}},
		{"to be alive", "To be, or not to be", []int{0}},
		{"user", "getUserById(user)", []int{2}},
		{"泵 压力", "水泵压力", []int{1, 1}},
		{"Caroline's dog", "Caroline has no dogs", []int{1, 1}},
		{"running runs", "run", []int{1}},
		{"🎉", "🎉 ok 🎉", []int{2}},
		{"pump", strings.Repeat("pump ", 300), []int{255}},
	}
	for _, tt := range tests {
		t.Run(tt.question, func(t *testing.T) {
			t.Parallel()
			d := searchtext.Text(tt.text)
			var got []int
			for _, g := range ask(t, tt.question).Groups {
				got = append(got, g.Count(d.Terms))
			}
			compare.Equal(t, "got", tt.want, got)
		})
	}
}

// What a text must have, and what is a phrase or a prefix beside the words.
func TestParseQuestion(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, must, groups string }{
		{`who wrote "the book" -draft`, "the book|-draft", "wrote book"},
		{"ERR_CONN_RESET in app/db.go", "", "err conn reset app db go [err conn reset] [app db go]"},
		{"pum* don't", "", "[pum*]"},
		{"水泵压力", "", "水泵 泵压 压力 [水泵 泵压 压力]"},
		{`"never closed`, "never closed", "never closed"},
		{"a AND b", "", "b"},
		{"a1.b2.c3.d4.e5.f6*", "", "a1 b2 c3 d4 e5 [a1 b2 c3 d4 e5 f6*]"},
		{"a1.b2.c3.d4.e5.f6.g7*", "", "a1 b2 c3 d4 e5 f6 [g7*]"},
		{`pump "pump"`, "pump", "pump"},
		{`When did Ann read "the book"? `, "", "ann read book [the book]"},
		{`Did Ann read “Pumps”, not -"the book"？`, "-the book", "ann read pumps"},
		{`What is in "a1 b2 c3 d4 e5 f6 g7"?`, "", "a1 b2 c3 d4 e5 f6 g7"},
		{`"the book"?`, "the book", "book"},
		{"NEAR(x) ^y %_*:^()", "", "near x y [near x]"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			q := ask(t, tt.text)
			var must, groups []string
			for _, term := range q.Must.Terms {
				must = append(must, strings.Repeat("-", len(map[bool]string{true: "-"}[term.Not]))+strings.Join(term.Words, " "))
			}
			for _, g := range q.Groups {
				if g.Term == nil {
					groups = append(groups, g.Words[0])
					continue
				}
				groups = append(groups, "["+strings.Join(g.Term.Words, " ")+strings.Repeat("*", len(map[bool]string{true: "*"}[g.Term.Prefix]))+"]")
			}
			compare.Equal(t, "must", tt.must, strings.Join(must, "|"))
			compare.Equal(t, "groups", tt.groups, strings.Join(groups, " "))
		})
	}
}

func TestParseQuestionRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"": "enter at least one letter", "\x00%_*:^()": "enter at least one letter", "-pump": "add a word", strings.Repeat("ab ", 4000): "at most 10240 bytes",
		strings.Repeat(`"a b" "c d" "e f" "g h" "i j"`, 2): "at most 8 phrases",
	} {
		if _, err := searchtext.ParseQuestion(text); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: got %v, want %q", text, err, says)
		}
	}
	compare.Equal(t, "repeated words: groups", 3, len(ask(t, strings.Repeat("a1 b2 c3 ", 1000)).Groups))
}

// A question of any size is parsed in one pass, and what it finds in a text in another one.
func TestQuestionsAreBounded(t *testing.T) { //nolint:paralleltest // it counts allocations
	var words, phrases []string
	for i := range 70 {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	text := strings.Join(words, ".")
	spans, ok := ask(t, "hello "+text+"*").FindWords("hello " + text)
	compare.Equal(t, "a long prefix: places", []any{true, 65}, []any{ok, len(spans)}) // hello, w0 to w62, w69
	if _, ok := (searchtext.Query{Terms: []searchtext.Term{{Words: words}}}).Find(text); ok {
		t.Error("found a phrase of 70 words, want that nothing finds it")
	}
	for i := range 2_500 {
		words = append(words, strings.Repeat(string(rune('a'+i%26)), 1+i%3)+string(rune('a'+i/26%26))+string(rune('a'+i/676)))
	}
	long := strings.Join(words, " ")[:searchtext.MaxQuestion]
	for name, text := range map[string]string{"spaces": long, "commas": strings.ReplaceAll(long, " ", ",")} {
		compare.Equal(t, name+": groups", 64, len(ask(t, text).Groups))
	}
	got := testing.AllocsPerRun(3, func() { ask(t, strings.ReplaceAll(long, " ", ",")) })
	compare.True(t, got <= 26_000, "got %.0f allocations for a question of 10 KiB, want a few for each word", got)
	for _, w := range []string{"pum", "hal", "val", "sea", "ven", "noz", "ste", "oil"} {
		phrases = append(phrases, w+"*")
	}
	once := func(question string) float64 {
		q := ask(t, question)
		return testing.AllocsPerRun(10, func() { q.FindWords("The pump in hall three has valves and seals") })
	}
	if one, all := once("pum*"), once(strings.Join(phrases, " ")); all > one+40 {
		t.Errorf("got %.0f allocations for a prefix, %.0f for 8", one, all)
	}
}

// Any question is parsed or refused, and what it finds lies within the text.
func FuzzQuestion(f *testing.F) {
	for _, q := range []string{`a "b c" -d e*`, "ERR_CONN", "水泵", "\x00", `"`, "don't", "hello " + strings.Repeat("w1.v.", 40) + "w*"} {
		f.Add(q, "The pump in ERR_CONN hall 水泵")
	}
	f.Fuzz(func(t *testing.T, question, text string) {
		q, err := searchtext.ParseQuestion(question)
		if err != nil {
			if !errors.Is(err, core.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		compare.True(t, len(q.Groups) != 0 && len(q.Groups) <= 72, "got %d groups", len(q.Groups))
		spans, _ := q.FindWords(text)
		last := 0
		for _, s := range spans {
			compare.True(t, s.Start >= last && s.End > s.Start && s.End <= len(text), "got the spans %v of %d bytes", spans, len(text))
			last = s.End
		}
		for _, g := range q.Groups {
			g.Count(searchtext.Terms(text))
		}
	})
}
