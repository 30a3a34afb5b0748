package standing_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core/standing"
	"bobbin/tests/must"
)

// A testCase is a line of testdata/cases.tsv: what users write. The rules were made with these
// cases, so they tell nothing about others.
type testCase struct {
	set      string // tuned: written with care; other, free: without; always, limits: with and without such a word; keeps, once: what only resembles them
	language string
	kind     string // wording, change, withdrawal: of something earlier; keeps: of nothing; none: sets nothing
	earlier  string // what stood before, separated by "|"; empty = nothing
	message  string // ⏎ is a line break; ‹…› marks what must stand, if it is not the whole message
}

func testCases(t *testing.T, file string) (out []testCase) {
	t.Helper()
	raw := must.Get(os.ReadFile(file))(t)
	for line := range strings.Lines(string(raw)) {
		f := strings.Split(strings.TrimRight(line, "\n"), "\t")
		out = append(out, testCase{f[0], cmp.Or(f[1], "any"), f[2], f[3], strings.ReplaceAll(f[4], "⏎", "\n")})
	}
	return out
}

// others stand beside what a case changes, and must stay.
func others() []string {
	return []string{"Never book a window seat.", "Remember that my son is called Tim."}
}

// isRight reports whether what stands after the case is what shall stand: the sentences of a wording
// or change behind all that stood before, word for word; a withdrawal ends what stood before.
func (c testCase) isRight() bool {
	message, marked := strings.NewReplacer("‹", "", "›", "").Replace(c.message), []string{c.message}
	if strings.Contains(c.message, "‹") {
		marked = nil
		for _, part := range strings.Split(c.message, "‹")[1:] {
			mark, _, _ := strings.Cut(part, "›")
			marked = append(marked, mark)
		}
	}
	l := sayAll(others())
	if c.earlier != "" {
		l = sayAll(append(others(), strings.Split(c.earlier, "|")...))
	}
	before := l.texts()
	l.say(message)
	after := l.texts()
	stands, isAdded := strings.HasPrefix(after, before), strings.HasSuffix(strings.ReplaceAll(after, "\n", " "), " "+strings.Join(marked, " "))
	return map[string]bool{"wording": stands && isAdded, "none": after == before, "keeps": stands, "change": isAdded, "withdrawal": !stands}[c.kind]
}

// shares are the shares in percent of each set and kind that must be right.
func shares() map[string]float64 {
	return map[string]float64{
		"tuned wording": 100, "tuned change": 97, "tuned withdrawal": 97, "tuned none": 100,
		"other wording": 90, "other change": 65, "other withdrawal": 60, "other none": 97,
		"free wording": 60, "free change": 20, "free withdrawal": 10, "free none": 98,
		"always wording": 0, "always none": 98, "limits wording": 0, "keeps keeps": 98, "once none": 97,
	}
}

// What users set, change and withdraw is recognized as far as it was when the rules were made, and
// what sets or changes nothing is not.
func TestCases(t *testing.T) {
	t.Parallel()
	scores := map[string]map[string]*score{}
	for _, c := range testCases(t, "testdata/cases.tsv") {
		kind := c.set + " " + c.kind
		if scores[kind] == nil {
			scores[kind] = map[string]*score{"all": {}, "en": {}, "de": {}, "fr": {}, "es": {}, "any": {}}
		}
		right := c.isRight()
		scores[kind][c.language].add(right)
		scores[kind]["all"].add(right)
		if !right {
			t.Logf("%s %s: %q, then %q", c.language, kind, c.earlier, c.message)
		}
	}
	for kind, share := range shares() {
		row := kind + ":"
		for _, language := range []string{"all", "en", "de", "fr", "es"} {
			row += fmt.Sprintf(" %s %s", language, scores[kind][language])
		}
		t.Log(row)
		if got := scores[kind]["all"]; got.percent() < share {
			t.Errorf("%s: got %s, want %.0f %%", kind, got, share)
		}
	}
}

// An instruction is recognized word for word wherever it stands in a message, whatever stands around it.
func TestFindAmongOtherText(t *testing.T) {
	t.Parallel()
	for n, c := range testCases(t, "testdata/cases.tsv") {
		if c.set != "tuned" || c.kind != "wording" || n%3 > 0 {
			continue
		}
		for _, f := range fillers() {
			for _, m := range f.places(c.message) {
				if found := standing.Find(m); len(found) != 1 || found[0].Text != c.message || found[0].Language != c.language {
					t.Errorf("got %+v in %q, want %s", found, m, c.message)
				}
			}
		}
	}
}

// TestShowStandingFalse prints what is taken for an instruction in long conversations
// between two people, who both count as users. The data may not be copied.
func TestShowStandingFalse(t *testing.T) {
	t.Parallel()
	const maxFalse = 2.0 // messages of 100
	raw, err := os.ReadFile(os.Getenv("BOBBIN_RECALL_DATA"))
	if err != nil {
		t.Skipf("nothing to measure with: set BOBBIN_RECALL_DATA to the path of recall-dev.json, or use make show-standing (%v)", err)
	}
	var talks []talk
	must.Do(t, json.Unmarshal(raw, &talks))
	messages, wrong := 0, 0
	for _, talk := range talks {
		if gone := lost(talk.texts()); len(gone) > 0 {
			t.Errorf("%s: got %d instructions lost: %q, want none", talk.ID, len(gone), gone)
		}
		for _, m := range talk.Messages {
			messages++
			if found := standing.Find(m.Text); len(found) > 0 {
				wrong++
				t.Logf("%s: %+v", m.ID, found)
			}
		}
	}
	rate := 100 * float64(wrong) / float64(max(messages, 1))
	if t.Logf("%d messages: %.2f of 100 taken for an instruction", messages, rate); rate > maxFalse {
		t.Errorf("got %.2f false ones in 100 messages, want at most %.0f", rate, maxFalse)
	}
}
