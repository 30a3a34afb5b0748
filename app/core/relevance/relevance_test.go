package relevance_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core/relevance"
	"bobbin/app/core/searchtext"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// parse returns a question of words, to be asked of documents.
func parse(t *testing.T, text string) relevance.Question {
	t.Helper()
	q := must.Get(searchtext.ParseQuestion(text))(t)
	return relevance.Question{Groups: q.Groups}
}

// documentsOf returns documents of two sessions in turn.
func documentsOf(texts ...string) []relevance.Document {
	var out []relevance.Document
	for i, text := range texts {
		d := searchtext.Text(text)
		out = append(out, relevance.Document{ID: int64(i), Session: []string{"b", "a"}[i%2], Seq: int64(1 + i/2), Length: d.Length, Terms: d.Terms})
	}
	return out
}

// A group stands at the places with it and at two on each side, none counted twice. The
// counts take one sort and a few allocations, however many groups and documents there are.
func TestFrequencies(t *testing.T) { //nolint:paralleltest // it counts allocations
	texts := slices.Repeat([]string{"nothing"}, 40)
	texts[0], texts[1], texts[4], texts[38] = "pump", "pump valve", "pump", "seal"
	// Session b: pump at 1 and 3, which reach 1 to 5; seal at 20, which reaches 18 to 22.
	// Session a: pump and valve at 1, which reach 1 to 3.
	compare.Equal(t, "got: want 8, 3, 5 and 0", []int{8, 3, 5, 0}, parse(t, "pump valve seal zebra").Frequencies(documentsOf(texts...)))
	var words []string
	for i := range 64 {
		words = append(words, fmt.Sprintf("w%d", i))
	}
	q, documents := parse(t, strings.Join(words, " ")), documentsOf(slices.Repeat([]string{strings.Join(words, " ")}, 2_000)...)
	got := testing.AllocsPerRun(1, func() { q.Frequencies(documents) })
	compare.True(t, got <= 5, "got %.0f allocations for 64 groups in 2,000 documents, want at most 5", got)
}

// Of many groups the rarest are kept, with their documents.
func TestKeepRarest(t *testing.T) {
	t.Parallel()
	q := parse(t, "pump valve seal zebra")
	q.Members = map[int]map[int64]bool{2: {7: true}}
	for isKnown, want := range map[bool]string{false: "seal zebra [3 0] map[0:map[7:true]]", true: "valve seal [5 3] map[1:map[7:true]]"} {
		kept, frequencies := q.KeepRarest(2, []int{9, 5, 3, 0}, isKnown)
		got := fmt.Sprint(kept.Groups[0].Words[0], " ", kept.Groups[1].Words[0], " ", frequencies, kept.Members)
		compare.True(t, strings.ReplaceAll(got, "]map", "] map") == want, "known %t: got %s, want %s", isKnown, got, want)
	}
}

// A short message comes behind a longer one with the same words, unless it has all words of the
// question, or the question has stop words only.
func TestShortMessagesCountLess(t *testing.T) {
	t.Parallel()
	for question, texts := range map[string][]string{
		"valve and pump": {"The valve of hall three works", "Valve!"},
		"sounds good":    {"Sounds good!", "The new pump of hall three sounds like the valve of hall four"},
		"is it":          {"It!", "It works well in hall three"},
	} {
		var documents []relevance.Document
		for i, text := range texts {
			d := searchtext.Text(text)
			documents = append(documents, relevance.Document{ID: int64(i), Session: "a", Seq: int64(10 * i), Length: d.Length, Terms: d.Terms})
		}
		r := relevance.Ranking{Question: parse(t, question), Mean: relevance.MeanLength(documents)}
		r.Weights = relevance.Weights(r.Frequencies(documents), int64(len(documents)))
		if got := r.Order(documents); len(got) != 2 || got[0].ID != 0 {
			t.Errorf("%s: got %v, want %q first", question, got, texts[0])
		}
	}
}

// What was said in short beside long answers comes before a long answer that has the words of the
// question more often: a message's length is its own.
func TestShortMessagesBesideLongAnswers(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("Nothing of this has to do with the matter, however long it may be, and nobody needs to read it twice. ", 30)
	advice := "Compare each fence with others in the garden. " + filler + "A fence in a garden costs money. "
	var documents []relevance.Document
	for i, text := range []string{"Hello there.", filler, "The fence for the garden is number seven, said Tim.", filler, "What else?", filler, "And then?", filler, "Tell me more.", advice, "Thanks!", filler} {
		d := searchtext.Text(text)
		documents = append(documents, relevance.Document{ID: int64(i), Session: "a", Seq: int64(i + 1), Length: d.Length, Terms: d.Terms})
	}
	r := relevance.Ranking{Question: parse(t, "Which fence for the garden?"), Mean: relevance.MeanLength(documents), Whole: true}
	r.Weights = relevance.Weights(r.Frequencies(documents), int64(len(documents)))
	got := r.Order(documents)
	compare.True(t, len(got) != 0 && got[0].ID == 2, "got %v, want the short message first", got)
}

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
			got := relevance.FindMentions(q, c.question).Boost(c.author, noon)
			compare.True(t, math.Abs(got-c.want) <= 1e-9, "got %v, want %v", got, c.want)
		})
	}
	var none relevance.Mentions
	compare.Equal(t, "without mentions", 1, none.Boost("Ann", noon))
}
