package standing_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core/standing"
)

// developmentCase is a line of testdata/development.tsv: what users of many kinds would write.
// The rules were made with these cases, so they tell nothing about others.
type developmentCase struct {
	language, kind string
	earlier        string // what stood before; empty = nothing
	message        string // with ‹…› around what must be kept, if that is not all
}

// developmentKinds are the kinds of cases with the share in percent that must be right: what
// sets something, what changes or withdraws something earlier, and what sets nothing.
func developmentKinds() map[string]float64 {
	return map[string]float64{"wording": 93, "change": 45, "withdrawal": 57, "none": 96}
}

func developmentCases(t *testing.T) []developmentCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/development.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var out []developmentCase
	for line := range strings.Lines(string(raw)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		c := developmentCase{language: fields[0], kind: fields[1], message: fields[len(fields)-1]}
		if len(fields) == 4 {
			c.earlier = fields[2]
		}
		out = append(out, c)
	}
	return out
}

// splitAllMarks returns the message without marks, and all that stands in ‹marks›.
func splitAllMarks(marked string) (message, kept string) {
	if !strings.Contains(marked, "‹") {
		return marked, marked
	}
	var marks []string
	for _, part := range strings.Split(marked, "‹")[1:] {
		mark, _, _ := strings.Cut(part, "›")
		marks = append(marks, mark)
	}
	return strings.NewReplacer("‹", "", "›", "").Replace(marked), strings.Join(marks, " ")
}

// isRight reports whether what stands after the case is what shall stand.
func (c developmentCase) isRight(t *testing.T) bool {
	t.Helper()
	message, kept := splitAllMarks(c.message)
	l := &log{}
	for _, m := range append(others(), c.earlier, "How are you today?", message) {
		l.say(m)
	}
	want := strings.Join(others(), " ")
	if c.kind == "wording" || c.kind == "change" {
		want += " " + kept
	}
	got := strings.ReplaceAll(l.texts(), "\n", " ")
	if got != want {
		t.Logf("%s %s %q, %q: got %q; found %+v", c.language, c.kind, c.earlier, c.message, got, standing.Find(message))
	}
	return got == want
}

// What users write without care is recognized, changed and withdrawn as far as it was when the
// rules were made, and what sets nothing is not.
func TestDevelopmentCases(t *testing.T) {
	t.Parallel()
	scores := map[string]map[string]*score{}
	for _, c := range developmentCases(t) {
		if scores[c.kind] == nil {
			scores[c.kind] = map[string]*score{"all": {}}
		}
		if scores[c.kind][c.language] == nil {
			scores[c.kind][c.language] = &score{}
		}
		right := c.isRight(t)
		scores[c.kind][c.language].add(right)
		scores[c.kind]["all"].add(right)
	}
	for kind, floor := range developmentKinds() {
		row := kind + ":"
		for _, language := range []string{"all", "en", "de", "fr", "es"} {
			row += fmt.Sprintf(" %s %s", language, scores[kind][language])
		}
		t.Log(row)
		if got := scores[kind]["all"]; got.percent() < floor {
			t.Errorf("%s: got %s, want %.0f %%", kind, got, floor)
		}
	}
}
