package searchtext_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestText(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, words, parts string }{
		{"nothing", "", "", ""},
		{"punctuation", "… - !?*()", "", ""},
		{"words", "The Pump, in hall-3.", "the pump in hall 3", ""},
		{"German", "Die STRASSE heißt Größe", "die strasse heisst grösse", ""},
		{"decomposed", "cafe\u0301 Gro\u0308ße", "café grösse", ""},
		{"Greek", "ΟΔΟΣ ΟΔΌΣ οδός Αΐδα", "οδοσ οδοσ οδοσ αϊδα", ""},
		{"Turkish", "ISPARTA ısparta", "isparta isparta", ""},
		{"Arabic marks", "مُحَمَّد يَكْتُبُ الكِتَاب محـــمد أَحْمَد", "محمد يكتب الكتاب محمد أحمد", ""},
		{"Hebrew marks", "שָׁלוֹם עולם", "שלום עולם", ""},
		{"invisible", "non\u00adbreak\u00ading zero\u200bwidth \ufeffbom \u202Edirection\u202C", "nonbreaking zerowidth bom direction", ""},
		{"zero-width non-joiner", "می\u200cخواهم کتاب\u200c ها\u200cی\u200cآن", "می خواهم کتاب ها ی آن", "میخواهم هایآن"},
		{"compatibility forms", "ｆｕｌｌ ﬁne ①②", "full fine 12", ""},
		{"snake case", "snake_case ERR_CONN_RESET", "snake case err conn reset", ""},
		{"paths", "app/db/models.go:12", "app db models go 12", ""},
		{"camel case", "getUserById", "getuserbyid", "get user by id"},
		{"capitals", "parseHTTPHeader HTTPServer userID", "parsehttpheader httpserver userid", "parse http header server user id"},
		{"no humps", "HTTP Hello iOS", "http hello ios", "i os"},
		{"digits", "E11000 utf8Text v2", "e11000 utf8text v2", "utf8 text"},
		{"humps that are words", "user getUser", "user getuser", "get"},
		{"Chinese", "水泵压力。", "水泵 泵压 压力", "水 泵 压 力"},
		{"one character", "A 水 b", "a 水 b", ""},
		{"Chinese in English", "iPhone手机ok", "iphone 手机 ok", "i phone 手 机"},
		{"two runs", "水泵，压力", "水泵 压力", "水 泵 压 力"},
		{"Japanese", "ポンプ室", "ポン ンプ プ室", "ポ ン プ 室"},
		{"half width", "ﾎﾟﾝﾌﾟ", "ポン ンプ", "ポ ン プ"},
		{"Korean", "한국어", "한국 국어", "한 국 어"},
		{"Thai", "น้ำ", "น้ ้ํ ํา", "น ้ ํ า"},
		{"symbols", "ok🎉✅done", "ok 🎉 ✅ done", ""},
		{"invalid", "a\xffb", "a b", ""},
		{"marks alone", "\u0301 \u0301a", "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := searchtext.Text(tt.text)
			got.Stems, got.Terms, got.Length = nil, nil, 0
			want := searchtext.Document{Words: strings.Fields(tt.words), Parts: strings.Fields(tt.parts)}
			compare.Equal(t, "", want, got, equateEmpty)
		})
	}
}

var equateEmpty = cmp.Transformer("words", func(list []string) string { return strings.Join(list, " ") })

// A text is searched up to 256 KiB, and a word up to 128 bytes.
func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	d := searchtext.Text(strings.Repeat("a", 1000) + " é" + strings.Repeat("é", 500) + strings.Repeat(" b", 1<<20))
	if len(d.Words[0]) != 128 || len(d.Words[1]) != 128 || len(d.Words) > searchtext.Limit/2 {
		t.Errorf("got words of %d and %d bytes and %d words, want 128, 128 and at most %d", len(d.Words[0]), len(d.Words[1]), len(d.Words), searchtext.Limit/2)
	}
	text := strings.Repeat("x", searchtext.Limit-1) + "水泵 needle"
	if _, found := parse(t, "needle").Find(text); found {
		t.Error("a word behind the limit was found")
	}
}

func parse(t *testing.T, text string) searchtext.Query {
	t.Helper()
	q, err := searchtext.Parse(text)
	must.True(t, err == nil, "%q: %v", text, err)
	return q
}

func TestParse(t *testing.T) {
	t.Parallel()
	word := func(words string) searchtext.Term { return searchtext.Term{Words: strings.Fields(words)} }
	not := func(words string) searchtext.Term { return searchtext.Term{Words: strings.Fields(words), Not: true} }
	prefix := func(words string) searchtext.Term {
		return searchtext.Term{Words: strings.Fields(words), Prefix: true}
	}
	tests := []struct {
		text string
		want []searchtext.Term
	}{
		{"Pump valve", []searchtext.Term{word("pump"), word("valve")}},
		{"pump PUMP", []searchtext.Term{word("pump")}},
		{`"The pump" valve`, []searchtext.Term{word("the pump"), word("valve")}},
		{`„die Pumpe“ «la pompe» 「水泵」`, []searchtext.Term{word("die pumpe"), word("la pompe"), word("水泵")}},
		{`"never closed`, []searchtext.Term{word("never closed")}},
		{`a"b c"d`, []searchtext.Term{word("a"), word("b c"), word("d")}},
		{"pump -valve", []searchtext.Term{word("pump"), not("valve")}},
		{`pump -"old valve"`, []searchtext.Term{word("pump"), not("old valve")}},
		{"well-known --addr a - b", []searchtext.Term{word("well known"), word("addr"), word("a"), word("b")}},
		{"exit code -1 -f deploy.yaml", []searchtext.Term{word("exit"), word("code"), word("1"), word("f"), word("deploy yaml")}},
		{"-f -la", []searchtext.Term{word("f"), not("la")}},
		{"pum*", []searchtext.Term{prefix("pum")}},
		{"app/db/mod*", []searchtext.Term{prefix("app db mod")}},
		{"p* x pu*p 泵*", []searchtext.Term{word("p"), word("x"), word("pu p"), word("泵")}},
		{"ERR_CONN_RESET", []searchtext.Term{word("err conn reset")}},
		{"getUserById", []searchtext.Term{word("getuserbyid")}},
		{"foo,bar;baz", []searchtext.Term{word("foo"), word("bar"), word("baz")}},
		{"水泵压力", []searchtext.Term{word("水泵 泵压 压力")}},
		{"水泵，压力", []searchtext.Term{word("水泵"), word("压力")}},
		{"iPhone手", []searchtext.Term{word("iphone"), word("手")}},
		{"🎉🎉 ok", []searchtext.Term{word("🎉"), word("ok")}},
		{`NOT a AND b OR ( c ) NEAR/2 ^d`, []searchtext.Term{word("not"), word("a"), word("and"), word("b"), word("or"), word("c"), word("near 2"), word("d")}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			compare.Equal(t, "", tt.want, parse(t, tt.text).Terms)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, says string }{
		{"nothing", "", "enter at least one letter"},
		{"blanks", " \t\n", "enter at least one letter"},
		{"punctuation", `"..." -- !? ** ()`, "enter at least one letter"},
		{"only negatives", `-pump -"the valve"`, "add a word to search for"},
		{"too long", strings.Repeat("a", 501), "at most 500 bytes"},
		{"too many words", strings.Repeat("a b c d e f g h i j ", 3) + "k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 0 " + strings.Repeat("水", 50), "at most 64 words"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := searchtext.Parse(tt.text)
			var told *core.Error
			compare.True(t, errors.Is(err, core.ErrInvalid) && errors.As(err, &told) && strings.Contains(told.Message, tt.says) && len(told.Fields) == 1, "got %v, want core.ErrInvalid that says %q", err, tt.says)
		})
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	tests := []struct{ query, text, want string }{
		{"pump", "The pump and the PUMP", "The [pump] and the [PUMP]"},
		{"pump valve", "The valve of the pump", "The [valve] of the [pump]"},
		{"pump hall", "The pump", ""},
		{`"the pump"`, "pump the pump", "pump [the pump]"},
		{`"the pump"`, "the old pump", ""},
		{"pump -hall", "pump in the hall", ""},
		{"pump -hall", "pump in the yard", "[pump] in the yard"},
		{`pump -"the hall"`, "pump, the yard, a hall", "[pump], the yard, a hall"},
		{"pum*", "Pumps, pumping; lamp", "[Pumps], [pumping]; lamp"},
		{`"duplicate key"`, "duplicate-key", "[duplicate-key]"},
		{"user", "getUserById(userID)", "get[User]ById([user]ID)"},
		{"getuserbyid", "x.getUserById()", "x.[getUserById]()"},
		{"http", "parseHTTPHeader", "parse[HTTP]Header"},
		{"conn_reset", "ERR_CONN_RESET", "ERR_[CONN_RESET]"},
		{"models.go", "see app/db/models.go:1", "see app/db/[models.go]:1"},
		{"泵", "水泵压力", "水[泵]压力"},
		{"水泵压力", "新的水泵压力异常", "新的[水泵压力]异常"},
		{"水压", "水泵压力", ""},
		{"strasse", "Die Straße", "Die [Straße]"},
		{"café", "cafe\u0301!", "[cafe\u0301]!"},
		{"full", "ｆｕｌｌ", "[ｆｕｌｌ]"},
		{"ポンプ", "ﾎﾟﾝﾌﾟ室", "[ﾎﾟﾝﾌﾟ]室"},
		{"میخواهم", "که می\u200cخواهم", "که [می\u200cخواهم]"},
		{"می\u200cخواهم", "که می خواهم", "که [می خواهم]"},
		{"می خواهم", "که می\u200cخواهم", "که [می\u200c][خواهم]"},
		{"می\u200cخواهم", "که میخواهم", "که [میخواهم]"},
		{"می\u200cخواهم", "که می به خواهم", ""},
		{"که -می\u200cخواهم", "که میخواهم", ""},
		{"aa a", "aa", ""},
		{`"get user"`, "getUser", ""},
	}
	for _, tt := range tests {
		t.Run(tt.query+" in "+tt.text, func(t *testing.T) {
			t.Parallel()
			spans, found := parse(t, tt.query).Find(tt.text)
			must.True(t, found == (tt.want != ""), "got found %t, want %q", found, tt.want)
			if got := mark(tt.text, spans); found && got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// mark puts the spans into brackets.
func mark(text string, spans []searchtext.Span) string {
	out, last := "", 0
	for _, s := range spans {
		out += text[last:s.Start] + "[" + text[s.Start:s.End] + "]"
		last = s.End
	}
	return out + text[last:]
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, query, text string
		size              int
		want              string
	}{
		{"whole", "pump", "The\n\npump \t works", 100, "The [pump] works"},
		{"middle", "needle", strings.Repeat("hay ", 50) + "needle " + strings.Repeat("straw ", 50), 30, "…hay hay [needle] straw straw…"},
		{"at the end of what fits", "needle", "The hay comes before the needle", 40, "The hay comes before the [needle]"},
		{"at the end", "needle", strings.Repeat("hay ", 50) + "needle", 20, "…hay hay hay [needle]"},
		{"where most is", "a b", "a " + strings.Repeat("x ", 100) + "b a " + strings.Repeat("y ", 100), 20, "…x x [b] [a] y y y y y y…"},
		{"unspaced", "压力", strings.Repeat("水", 60) + "压力" + strings.Repeat("泵", 60), 12, "…水水水[压力]泵泵泵泵泵泵泵…"},
		{"longer than the excerpt", `"a b c d e f"`, "x a b c d e f", 5, "…[a b c]…"},
		{"controls", "pump", "\x1b[1m pump\u0007", 50, "[1m [pump]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			spans, found := parse(t, tt.query).Find(tt.text)
			must.True(t, found, "not found")
			excerpt, at := searchtext.Excerpt(tt.text, spans, tt.size)
			compare.Equal(t, "mark(excerpt, at)", tt.want, mark(excerpt, at))
		})
	}
	if got, _ := searchtext.Excerpt("all of it is said", nil, 9); got != "all of it…" {
		t.Errorf("without spans: got %q", got)
	}
}

// FuzzFind: whatever is written, what is looked for can be written into any query
// language in quotes, a text without operators finds itself, and Find agrees with
// what Text keeps.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"pump", `"a b" -c d*`, "水泵 iPhone手", "a\u0301 \u1100\u1161", "½①ﷺ", "İstanbul ǅ", "\xff\x00'\"\\", "getUserById", "ﾊﾞ ゔ ｶﾞ"} {
		f.Add(seed, seed)
		f.Add(seed, "the "+seed+" and")
	}
	f.Fuzz(func(t *testing.T, query, text string) {
		q, err := searchtext.Parse(query)
		if err != nil {
			if !errors.Is(err, core.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, term := range q.Terms {
			for _, w := range term.Words {
				compare.True(t, w != "" && !strings.ContainsFunc(w, unquotable) && utf8.ValidString(w), "got the word %q", w)
			}
		}
		spans, found := q.Find(text)
		compare.Equal(t, fmt.Sprintf("%+v in %q", q, text), brute(q, searchtext.Text(text)), found)
		last := 0
		for _, s := range spans {
			compare.True(t, s.Start >= last && s.End > s.Start && s.End <= len(text), "got the spans %v of %d bytes", spans, len(text))
			last = s.End
		}
		excerpt, at := searchtext.Excerpt(text, spans, 20)
		for _, s := range at {
			compare.True(t, s.Start >= 0 && s.End <= len(excerpt) && s.End >= s.Start, "got the spans %v of %q", at, excerpt)
		}
		if _, itself := q.Find(query); !itself && !strings.Contains(query, "-") {
			t.Errorf("%q does not find itself", query)
		}
	})
}

func unquotable(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.So, r)
}

// brute is what Find promises, said another way.
func brute(q searchtext.Query, d searchtext.Document) bool {
	for _, term := range q.Terms {
		fits := func(i int, w string) bool {
			return w == term.Words[i] || term.Prefix && i == len(term.Words)-1 && strings.HasPrefix(w, term.Words[i])
		}
		found := false
		for i := range d.Words {
			all := i+len(term.Words) <= len(d.Words)
			for k := 0; all && k < len(term.Words); k++ {
				all = fits(k, d.Words[i+k])
			}
			found = found || all
		}
		for _, p := range d.Parts {
			found = found || len(term.Words) == 1 && fits(0, p)
		}
		if found == term.Not {
			return false
		}
	}
	return true
}

// Of a text that is full of what is looked for, some 50 places are told, and no more of
// it is read; of a common term before a rare one no more than a thousand.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	full := strings.Repeat("a b ", 60_000)
	for name, c := range map[string]struct {
		text, query string
		found       bool
		least, most int
	}{
		"a word":                    {full, "a", true, 50, 51},
		"a phrase":                  {full, `"a b"`, true, 50, 51},
		"words and phrases":         {full, `a b "a b" "b a" "a b a"`, true, 1, 51},
		"a rare word at the end":    {full + "pump", "a pump", true, 50, 1_001},
		"what must not be there":    {full, "a -pump", true, 1_000, 1_000},
		"what is there and may not": {full + "pump", "a -pump", false, 0, 0},
		"a phrase that is not":      {full, `"` + strings.Repeat("a b ", 29) + `b b"`, false, 0, 0},
	} {
		spans, found := parse(t, c.query).Find(c.text)
		compare.True(t, found == c.found && len(spans) >= c.least && len(spans) <= c.most, "%s: got %d places, found %v, want %d to %d, %v", name, len(spans), found, c.least, c.most, c.found)
	}
}

// A query has a bounded number of words and of phrases.
func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	phrases := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(string(rune('a'+i)) + ".b ")
		}
		return b.String()
	}
	compare.Equal(t, "8 phrases: len(q.Terms)", 8, len(must.Get(searchtext.Parse(phrases(8)))(t).Terms))
	if _, err := searchtext.Parse(phrases(9)); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "at most 8 phrases, this one has 9") {
		t.Errorf("9 phrases: got %v, want them refused", err)
	}
}

// The pieces of an excerpt are the excerpt, in any script.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		excerpt string
		spans   []searchtext.Span
		want    []core.Piece
	}{
		{"", nil, []core.Piece{}},
		{"no match", nil, []core.Piece{{Text: "no match"}}},
		{"👋🏽 Grüße, 世界!", []searchtext.Span{{Start: 9, End: 16}, {Start: 18, End: 24}}, []core.Piece{
			{Text: "👋🏽 "}, {Text: "Grüße", Match: true}, {Text: ", "}, {Text: "世界", Match: true}, {Text: "!"},
		}},
		{"aa", []searchtext.Span{{Start: 0, End: 1}, {Start: 1, End: 2}}, []core.Piece{{Text: "a", Match: true}, {Text: "a", Match: true}}},
	} {
		compare.Equal(t, fmt.Sprintf("%q", c.excerpt), c.want, searchtext.Pieces(c.excerpt, c.spans))
	}
}
