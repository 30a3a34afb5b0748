package standing_test

import (
	"strconv"
	"strings"
	"testing"

	"bobbin/app/core/standing"
)

// What a message takes that has nothing, and the largest of each kind that is read.
func BenchmarkFind(b *testing.B) {
	for _, bb := range []struct{ name, text string }{
		{"message", "I walked along the harbor this morning. The boats were lovely, and I always like that. What would you do?"},
		{"prose", strings.Repeat("The boats in the harbor were lovely. ", standing.MaxText/37)},
		{"rules", strings.Repeat("She said I always, never, from now on you must, please do not answer in German or the like of it. ", standing.MaxText/98)},
		{"one line", strings.Repeat("always never ", standing.MaxText/13)},
		{"quotes", strings.Repeat("\"a' „", standing.MaxText/7)},
		{"lines", strings.Repeat("from: a\n", standing.MaxText/8)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				standing.Find(bb.text)
			}
		})
	}
}

// What it takes to compare an instruction with the most that stand.
func BenchmarkApply(b *testing.B) {
	var older []standing.Instruction
	for i := range 100 {
		older = append(older, standing.Instruction{ID: strconv.Itoa(i), Text: "Never ever mention the harbor of town " + strconv.Itoa(i) + " in your answers to my boss."})
	}
	found := standing.Found{Text: "From now on use celsius for all temperatures.", Language: "en"}
	for b.Loop() {
		standing.Apply(older, found)
	}
}
