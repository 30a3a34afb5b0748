package core_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/searchtext"
)

// A quotation of a message is found in its text, and is the same when it is quoted again.
func TestRecalledPassage(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("The canoe\n\tis from Turku. \x01", 40)
	beginning, _ := searchtext.Excerpt(long, nil, 100)
	end := long[len(long)-10:]
	ending, _ := searchtext.Excerpt(long, []searchtext.Span{{Start: len(long) - 8, End: len(long) - 3}}, 60)
	for name, tt := range map[string]struct {
		content, quotation string
		want               bool
	}{
		"whole":               {"The canoe\nis  from Turku.", "The canoe is from Turku.", true},
		"beginning":           {long, beginning, true},
		"end":                 {long, ending, true},
		"cut without a mark":  {long, strings.TrimSuffix(beginning, "…")[:20], true},
		"a mark of its own":   {"… and so on …", "… and so on …", true},
		"of another message":  {"The canoe", "The boat", false},
		"empty":               {"The canoe", "", false},
		"only marks":          {"The canoe", "……", false},
		"of an attached file": {end, "chapter one", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := core.Message{ID: "m", Content: tt.content}
			p, found := core.FindPassage(m, tt.quotation)
			if found != tt.want {
				t.Fatalf("got %+v, %t, want found %t", p, found, tt.want)
			}
			if !found {
				return
			}
			if got, ok := p.Quote(m); !ok || got != tt.quotation {
				t.Errorf("got %q, %t, want %q", got, ok, tt.quotation)
			}
			if got, ok := p.Quote(core.Message{}); ok {
				t.Errorf("got %q of a message without text, want none", got)
			}
		})
	}
}
