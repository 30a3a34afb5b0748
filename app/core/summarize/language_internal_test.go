package summarize

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// exchange returns messages of user and assistant in turns.
func exchange(texts ...string) []core.Message {
	var list []core.Message
	for i, text := range texts {
		role := core.RoleUser
		if i%2 == 1 {
			role = core.RoleAssistant
		}
		list = append(list, core.Message{Seq: int64(i + 1), Role: role, Content: text})
	}
	return list
}

// A few words are easily taken for those of another language: nothing is refused for its
// language unless that of the whole conversation is sure, and the answer long enough.
func TestLanguageIsSureOnBothSides(t *testing.T) {
	t.Parallel()
	german := []string{
		"Wir möchten im Herbst die Küche erneuern, der Boden aus Eiche soll aber bleiben.", "Das geht, wenn Spüle und Herd an ihrem Platz bleiben und die Leitungen nicht verlegt werden.",
		"Der Herd mit Gas kommt weg, wir wollen künftig mit Induktion kochen.", "Dafür braucht ihr einen eigenen Anschluss; fragt vorher jemanden, der sich damit auskennt.",
		"Freitags dürfen keine Handwerker kommen, weil ich donnerstags nachts arbeite.", "Ist notiert, dann wird nur von Montag bis Donnerstag gearbeitet.",
	}
	const inGerman = "Die Küche wird im Herbst erneuert, der Boden aus Eiche bleibt. Statt mit Gas wird künftig mit Induktion gekocht, wofür ein eigener Anschluss nötig ist. " +
		"Freitags dürfen keine Handwerker kommen, weil der Nutzer donnerstags nachts arbeitet."
	const inEnglish = "The kitchen is to be renewed in autumn while the oak floor stays where it is. Gas gives way to induction, which needs a line of its own, " +
		"and nobody may come to work on a Friday because the user works at night on Thursdays."
	salad := strings.Repeat("night visit sensor valve pump paper seal order shift report seal valve ", 20)
	for name, tt := range map[string]struct {
		messages []core.Message
		previous string
		answer   string
		foreign  bool
	}{
		"the same language":          {exchange(german...), "", inGerman, false},
		"another language":           {exchange(german...), "", inEnglish, true},
		"another, of a few words":    {exchange(german...), "", "Kitchen in autumn, oak floor stays, induction.", false},
		"short messages":             {exchange("ok", "Gut.", "ja, weiter", "Mache ich.", "und jetzt?", "Fertig."), "", inEnglish, false},
		"the user says little":       {exchange("ok", german[1], "weiter", german[3], "gut", german[5]), "", inEnglish, false},
		"the assistant says little":  {exchange(german[0], "Ok.", german[2], "Ja.", german[4], "Fine."), "", inEnglish, false},
		"words without sentences":    {exchange(salad, salad, salad, salad), "", inEnglish, false},
		"both speak their own":       {exchange(german[0], inEnglish, german[2], inEnglish), "", inEnglish, false},
		"the summary before":         {exchange(german...), inEnglish, inEnglish, false},
		"one message in another one": {exchange(append([]string{"Could you please help us with the kitchen that we want to renew?", german[1]}, german...)...), "", inEnglish, false},
		"English in short messages":  {exchange("do it", "Done.", "no, the other one", "I see.", "go on", "All tests pass."), "", inEnglish, false},
		"Spanish in short messages":  {exchange("sí", "Hecho.", "la otra", "Vale.", "sigue", "Listo."), "", inEnglish, false},
		"only code":                  {exchange("```go\nfunc main() {}\n```", "`go vet ./...`"), "", inGerman, false},
	} {
		e := evidence{languages: languagesOf(tt.messages, tt.previous).all}
		if got := e.isForeign(tt.answer); got != tt.foreign {
			t.Errorf("%s: refused %v, want %v; spoken are %v", name, got, tt.foreign, e.languages)
		}
	}
}
