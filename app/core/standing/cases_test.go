package standing_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/standing"
	"bobbin/tests/compare"
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
		got := scores[kind]["all"]
		compare.True(t, got.percent() >= share, "%s: got %s, want %.0f %%", kind, got, share)
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
				found := standing.Find(m)
				compare.True(t, len(found) == 1 && found[0].Text == c.message && found[0].Language == c.language, "got %+v in %q, want %s", found, m, c.message)
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
		gone := lost(talk.texts())
		compare.True(t, len(gone) == 0, "%s: got %d instructions lost: %q, want none", talk.ID, len(gone), gone)
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

// kept are instructions of three people that no conversation here changes.
func kept() [][]string {
	return [][]string{
		{
			"Never call the API after 18:00.", "Always answer in Dutch.", "My budget is 400 €.", "Keep answers under 50 words.", "I'm a vegetarian.", "Call me Jim.", "Use British spelling.",
			"Always give temperatures in Celsius.", "Don't schedule anything before 9am.", "Never recommend horror movies.", "Never mention my ex-wife.", "I'm allergic to peanuts.",
			"Use a formal tone from now on.", "Write code in Go from now on.", "No emojis, please.", "My deadline is 3 May.", "Ask me before you delete anything.", "Always end with a question.",
		},
		{
			"Never suggest beach holidays.", "Please answer in French from now on.", "Keep every reply to three sentences.", "I don't eat pork.", "Please call me Mel.", "Always use American spelling.",
			"Give all distances in kilometers.", "No calls before 10 am.", "Never talk about my father.", "I am allergic to cats.", "Please be friendly and casual in all your answers.",
			"Always use Python for examples.", "Never use bullet points.", "Always list the price.", "Ask before you book anything.", "Always explain things step by step.", "Our budget is 2,000 dollars.",
		},
		{
			"Write all prices in euros.", "You are my English teacher from now on.", "Never mention politics.", "I'm vegan.", "Max. 5 bullet points per answer.", "Always show the tests first.",
			"My pronouns are they/them.", "Sign every email with Marta.", "Use metric units only.", "Never delete files without asking.", "Always answer with a haiku.", "Speak to me like a pirate from now on.",
		},
	}
}

// keptByForm returns sixty instructions about different things in the same twelve forms, as
// tests/e2e has them.
func keptByForm() []string {
	forms := []string{
		"Never mention %s.", "From now on, always ask me about %s.", "Don't ever write about %s.",
		"Erwähne nie %s.", "Frag mich ab jetzt immer nach %s.", "Schreib niemals über %s.",
		"Ne parle jamais de %s.", "Désormais, demande-moi toujours %s.", "N'écris jamais sur %s.",
		"Nunca menciones %s.", "A partir de ahora, pregúntame siempre por %s.", "No escribas nunca sobre %s.",
	}
	var out []string
	for i, thing := range []string{"Berlin", "Gotham", "Narnia", "Atlantis", "Camelot"} {
		for j, form := range forms {
			out = append(out, fmt.Sprintf(form, fmt.Sprintf("%s %c%c", thing, 'A'+i, 'A'+j)))
		}
	}
	return out
}

// sayAll returns a log of the messages.
func sayAll(messages []string) *log {
	l := &log{}
	for _, m := range messages {
		l.say(m)
	}
	return l
}

// lost returns which of those kept no longer stand after the messages, each with the message
// that ended it.
func lost(messages []string) (out []string) {
	for _, instructions := range append(kept(), keptByForm()) {
		l := sayAll(instructions)
		for _, m := range messages {
			before := l.standing
			l.say(m)
			for _, i := range before {
				if slices.Contains(instructions, i.Text) && !slices.ContainsFunc(l.standing, func(o standing.Instruction) bool { return o.ID == i.ID }) {
					out = append(out, i.Text+" ‹ "+m)
				}
			}
		}
	}
	return out
}

// Instructions about different things stand beside each other, and a long conversation about
// other things changes and withdraws none of them.
func TestInstructionsSurviveConversations(t *testing.T) {
	t.Parallel()
	for _, instructions := range append(kept(), keptByForm()) {
		if got := sayAll(instructions).texts(); got != strings.Join(instructions, "\n") {
			t.Errorf("lost %q", slices.DeleteFunc(slices.Clone(instructions), func(i string) bool { return strings.Contains(got, i) }))
		}
	}
	raw := must.Get(os.ReadFile("../../../tests/eval/recall/sample.json"))(t)
	var talks []talk
	must.Do(t, json.Unmarshal(raw, &talks))
	for _, talk := range talks {
		got := lost(talk.texts())
		compare.True(t, len(got) == 0, "%s: lost %q", talk.ID, got)
	}
}

// talk is a conversation between two people.
type talk struct {
	ID       string
	Messages []struct{ ID, Text string }
}

func (t talk) texts() (out []string) {
	for _, m := range t.Messages {
		out = append(out, m.Text)
	}
	return out
}
