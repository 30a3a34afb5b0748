package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

// The pieces of an excerpt are the excerpt, in any script.
func TestPieces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		excerpt    string
		highlights []core.Highlight
		want       []core.Piece
	}{
		{"", nil, []core.Piece{}},
		{"no match", nil, []core.Piece{{Text: "no match"}}},
		{"👋🏽 Grüße, 世界!", []core.Highlight{{Start: 9, End: 16}, {Start: 18, End: 24}}, []core.Piece{
			{Text: "👋🏽 "}, {Text: "Grüße", Match: true}, {Text: ", "}, {Text: "世界", Match: true}, {Text: "!"},
		}},
		{"aa", []core.Highlight{{Start: 0, End: 1}, {Start: 1, End: 2}}, []core.Piece{{Text: "a", Match: true}, {Text: "a", Match: true}}},
	} {
		if diff := cmp.Diff(c.want, core.Pieces(c.excerpt, c.highlights)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.excerpt, diff)
		}
	}
}
