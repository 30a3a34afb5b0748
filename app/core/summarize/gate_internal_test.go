package summarize

import (
	"strings"
	"testing"
)

// Words are found in one pass that copies nothing, however many there are: all of a
// transcript is searched for those of an answer.
func TestWordsAreFoundInOnePass(t *testing.T) { //nolint:paralleltest // counts what is copied
	for _, text := range []string{"word ", "a/b17.go ", "- a17 [1]\n", "長い文", "1.2.3,4,,5"} {
		text = strings.Repeat(text, 1_000)
		words := 0
		if n := testing.AllocsPerRun(1, func() { eachWord(text, func(w textWord) { words += len(w.text) }) }); n > 0 && !strings.Contains(text, "1.2") || words == 0 {
			t.Errorf("%.10q: %v copies, want none", text, n)
		}
	}
}

// A summary in another language than the conversation's is refused; one that lists the
// conversation's own words is not, whatever language they look like.
func TestForeignLanguage(t *testing.T) {
	t.Parallel()
	german := "Die Lieferung der neuen Maschine wurde auf den zwölften März verschoben, weil der Hersteller noch auf wichtige Bauteile wartet. " +
		"Der Einkauf soll bis Freitag klären, welche Ersatzteile bereits verfügbar sind und wer die Kosten der Verzögerung trägt."
	english := "We talked about the delivery of the new machine, which is late, and about the parts that the maker still waits for. "
	for _, tt := range []struct {
		name, transcript string
		want             bool
	}{
		{"of a conversation in English", strings.Repeat(english, 5), true},
		{"of a conversation that has the words", english + german, false},
	} {
		e := evidence{transcript: tt.transcript, languages: []string{"English"}}
		if got := e.isForeign(german); got != tt.want {
			t.Errorf("a German text %s: got foreign %v, want %v", tt.name, got, tt.want)
		}
	}
}
