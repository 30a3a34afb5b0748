package standing_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// developmentCase is a line of a file in testdata: what users of many kinds would write.
// The rules were made with these cases, so they tell nothing about others.
type developmentCase struct {
	language, kind string
	earlier        string // what stood before; empty = nothing
	message        string // with ‹…› around what must be kept, if that is not all
}

// developmentFiles are the files of cases with the share in percent that must be right of each kind:
// what sets something, what changes or withdraws something earlier, what only looks so ("keeps"),
// and what sets nothing.
func developmentFiles() map[string]map[string]float64 {
	return map[string]map[string]float64{
		"development.tsv": {"wording": 93, "change": 62, "withdrawal": 27, "none": 96},
		"changes.tsv":     {"change": 45, "withdrawal": 11, "keeps": 100},
	}
}

func developmentCases(t *testing.T, file string) []developmentCase {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + file)
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

// isRight reports whether what stands after the case is what shall stand. What changes or withdraws
// the earlier instruction ends it.
func (c developmentCase) isRight(t *testing.T) bool {
	t.Helper()
	message, kept := splitAllMarks(c.message)
	l := sayAll(others())
	if c.earlier != "" {
		l = sayAll(append(others(), strings.Split(c.earlier, "|")...))
	}
	before := l.texts()
	l.say("How are you today?")
	l.say(message)
	after := l.texts()
	stands, isAdded := strings.HasPrefix(after, before), strings.HasSuffix(strings.ReplaceAll(after, "\n", " "), " "+kept)
	right := map[string]bool{
		"wording": stands && isAdded, "none": after == before, "keeps": stands,
		"change": isAdded, "withdrawal": !stands,
	}[c.kind]
	if !right {
		t.Logf("%s %s %q, %q: got %q", c.language, c.kind, c.earlier, c.message, after)
	}
	return right
}

// What users write without care is recognized, changed and withdrawn as far as it was when the
// rules were made, and what sets or changes nothing is not.
func TestDevelopmentCases(t *testing.T) {
	t.Parallel()
	for file, floors := range developmentFiles() {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			scores := map[string]map[string]*score{}
			for _, c := range developmentCases(t, file) {
				if scores[c.kind] == nil {
					scores[c.kind] = map[string]*score{"all": {}, "en": {}, "de": {}, "fr": {}, "es": {}}
				}
				right := c.isRight(t)
				scores[c.kind][c.language].add(right)
				scores[c.kind]["all"].add(right)
			}
			for kind, floor := range floors {
				row := kind + ":"
				for _, language := range []string{"all", "en", "de", "fr", "es"} {
					row += fmt.Sprintf(" %s %s", language, scores[kind][language])
				}
				t.Log(row)
				if got := scores[kind]["all"]; got.percent() < floor {
					t.Errorf("%s: got %s, want %.0f %%", kind, got, floor)
				}
			}
		})
	}
}
