package relevance_test

import (
	"math"
	"testing"
	"time"

	"bobbin/app/core/relevance"
	"bobbin/app/core/searchtext"
	"bobbin/tests/must"
)

// A message counts more if the question names its author, by any word of the name, or its day,
// in the forms that people write.
func TestBoost(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		question, author string
		want             float64
	}{
		"nobody":                {"What did we buy?", "Ann", 1},
		"no author":             {"What did Ann buy?", "", 1},
		"author":                {"What did Ann buy?", "Ann", 1.4},
		"possessive":            {"Which is Ann's boat?", "Ann", 1.4},
		"another author":        {"What did Ann buy?", "Ben", 1},
		"first name":            {"What did ann buy?", "Ann Lee", 1.4},
		"part of a word":        {"What about the annex?", "Ann", 1},
		"stop word":             {"What will Ann buy?", "Will", 1},
		"day":                   {"What did we buy on 31 January 2026?", "", 1.4},
		"day and author":        {"What did Ann buy on January 31, 2026?", "Ann", 1.8},
		"ordinal":               {"What about the 31st of January, 2026?", "", 1.4},
		"short month":           {"What about Jan 31 2026?", "", 1.4},
		"ISO":                   {"What about 2026-01-31?", "", 1.4},
		"German":                {"Was kauften wir am 31. Januar 2026?", "", 1.4},
		"month":                 {"What did we buy in January 2026?", "", 1.4},
		"another day":           {"What did we buy on 28 January 2026?", "", 1},
		"the day before, zones": {"What did we buy on 1 February 2026?", "", 1.4},
		"another month":         {"What did we buy in March 2026?", "", 1},
		"no such day":           {"What about 31 February 2026 or 2026-13-31?", "", 1},
		"no year":               {"What did we buy in January?", "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := must.Get(searchtext.ParseQuestion(c.question))(t)
			if got := relevance.FindMentions(q, c.question).Boost(c.author, noon); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	var none relevance.Mentions
	if got := none.Boost("Ann", noon); got != 1 {
		t.Errorf("without mentions: got %v, want 1", got)
	}
}
