package standing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/standing"
)

// What may change or withdraw an instruction stands beside it, whatever its words; alone, or where
// nothing is about the same, it says nothing.
func TestRemarks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ earlier, message string }{
		{"Always answer in English.", "Could we carry on in Portuguese?"},
		{"My budget for the kitchen is 12,000 dollars.", "The kitchen can't cost more than nine grand any more."},
		{"I eat vegetarian.", "The doctor wants me back on fish, so it's pescatarian from today."},
		{"Always answer in bullet points.", "Please write in proper paragraphs."},
		{"Always ask before you change my text.", "my texts dont need that anymore"},
		{"Use only metric units.", "scrap what I said about metric, whichever units you like"},
		{"Bleib immer sachlich.", "der ton darf jetzt ruhig lockerer sein"},
		{"Plane für mich nur Wanderungen bis 10 Kilometer.", "Die Wanderungen dürfen jetzt länger sein."},
		{"Mon budget pour le canapé est de 700 euros.", "On peut monter à 1100 pour le canapé maintenant."},
		{"Réponds toujours en anglais.", "Bon, on repasse au français."},
		{"Usa siempre párrafos largos.", "ponme los párrafos más cortos"},
		{"No menciones a mi jefa.", "A mi jefa la puedes nombrar sin problema."},
	} {
		l := sayAll([]string{tt.earlier, "Never book a window seat."})
		l.say(tt.message)
		if want := tt.earlier + "\nNever book a window seat.\n" + tt.message; l.texts() != want || l.standing[2].About != l.standing[0].ID {
			t.Errorf("%q, then %q: got %+v", tt.earlier, tt.message, l.standing)
		}
		if alone := sayAll([]string{"Never book a window seat.", tt.message}); len(alone.standing) != 1 {
			t.Errorf("%q alone: got %q", tt.message, alone.texts())
		}
	}
}

// The newest remarks stand beside an instruction, as long as it stands, and take the room of none.
func TestRemarksAreBounded(t *testing.T) {
	t.Parallel()
	l := sayAll([]string{"Never mention my sister's garden.", "The garden is fine again.", "The garden is allowed now.", "The garden is ok now.", "Never use tabs."})
	if want := "Never mention my sister's garden.\nThe garden is allowed now.\nThe garden is ok now.\nNever use tabs."; l.texts() != want {
		t.Errorf("got %q, want %q", l.texts(), want)
	}
	if l.say("Forget all my rules."); len(l.standing) > 0 {
		t.Errorf("got %q after all were withdrawn", l.texts())
	}
	var text strings.Builder
	for i := range standing.MaxFound {
		fmt.Fprintf(&text, "Never mention town %d. ", i)
	}
	text.WriteString(strings.Repeat("The garden is fine again. ", 30))
	found := standing.Find(text.String())
	if n := len(found); n <= standing.MaxFound || n > standing.MaxFound+5 || !slices.ContainsFunc(found, func(f standing.Found) bool { return f.Text == "Never mention town 0." }) {
		t.Errorf("got %d, want %d instructions and a few remarks: %+v", n, standing.MaxFound, found)
	}
}
