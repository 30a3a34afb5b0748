package recall

import (
	"fmt"
	"strings"
	"testing"
)

// Evidence is told by a text that has it word for word, or by one place in it with most of its
// telling words and all of those that the answer has.
func TestEvidence(t *testing.T) {
	t.Parallel()
	q := Question{Evidence: []Evidence{{
		Text:    "Yesterday we bought a red canoe from Olga in Turku.",
		Telling: []string{"bought", "canoe", "olga", "red", "turku"}, Answer: []string{"turku"},
	}}}
	var filler strings.Builder
	for i := range 70 {
		fmt.Fprintf(&filler, "word%d ", i)
	}
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"nowhere", "they bought something", false},
		{"whole, over two lines", "1: yesterday WE bought a red canoe\nfrom Olga in Turku.", true},
		{"in other words", "- a canoe bought in Turku", true},
		{"without the answer", "- a red canoe bought from Olga", false},
		{"in two lines", "- a canoe was bought\n- Turku", false},
		{"far apart in a line", "- a canoe was bought " + filler.String() + " in Turku", false},
		{"close in a long line", "- " + filler.String() + " a canoe was bought in Turku", true},
		{"too few of its words", "- a trip to Turku with Olga", false},
	} {
		if got := q.isTold(tt.text); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}
