package summarize

import (
	"slices"
	"strings"
	"testing"

	"bobbin/tests/compare"
)

// A summary has words of its messages that are not those of its request, which follow each other as they
// do there, and one that extends another keeps some of that one.
func TestPairsOfASummary(t *testing.T) {
	t.Parallel()
	const talk = "The fair begins on the fourth of May in the old tram depot, and forty stalls are booked. Norwood Catering wants the corner by the gate, with two power lines. " +
		"The fire brigade asks for an aisle of three meters between the rows, and the city for a plan of the exits by the end of March. " +
		"Ingrid prints the posters with the red lamp, since the green one was last year's. Volunteers meet on Tuesdays at seven in the library."
	const earlier = "The fair costs nine thousand, of which the bank gives half if its name is on the tickets, and a raffle pays the rest of what the band takes. " +
		"Tickets cost eleven crowns, children under twelve enter without paying, and whoever helps on both mornings receives coffee, breakfast vouchers."
	const ours = "Answer with the summary alone, no opening words. Above all it says what concerns this: The fire brigade asks for an aisle of three meters between the rows, volunteers meet on Tuesdays at seven."
	backward := strings.Fields(talk)
	slices.Reverse(backward)
	for name, tt := range map[string]struct {
		text, previous string
		want           error
	}{
		"a summary":           {"Forty stalls are booked for the fair in the tram depot. The fire brigade wants wide aisles; posters show the red lamp.", "", nil},
		"its words, backward": {strings.Join(backward, " "), "", errUngrounded},
		"our own words":       {ours, "", errUngrounded},
		"a poem":              {"O gentle moon above silent hills, whose silver sings to sleeping rivers, carry my longing beyond winter's sorrow.", "", errUngrounded},
		"an excuse":           {"I am sorry, but I cannot help you with this request today.", "", errUngrounded},
		"extends the earlier": {"The bank gives half if its name is on the tickets. Forty stalls are booked, Norwood Catering wants the corner.", earlier, nil},
		"forgets the earlier": {"Forty stalls are booked, Norwood Catering wants the corner by the gate.", earlier, errForgotten},
	} {
		compare.Error(t, name, tt.want, (evidence{transcript: talk, previous: tt.previous, prompt: ours}).checkText(tt.text, 100))
	}
}
