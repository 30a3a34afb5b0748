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

// A filler is what users write around an instruction.
type filler struct{ name, before, after string }

func fillers() []filler {
	return []filler{
		{"talk", "I walked along the harbor this morning. The boats were lovely.", "What would you do on a rainy afternoon?"},
		{"code", "Why does this fail?\n```go\n// always return nil here\nreturn nil\n```", "```sh\nmake test # never run this as root\n```\nAny idea?"},
		{"log", "2026-01-02 10:11:12 INFO never mind the cache\nError: from now on retries are off", "[10:12:13] WARN always retry"},
		{"German", "Heute war ich am Hafen. Die Boote waren schön.", "> Ruf mich nie wieder an.\nWas meinst du dazu?"},
	}
}

// places puts the instruction at the beginning, in the middle and at the end of a message.
func (f filler) places(text string) []string {
	return []string{text + "\n" + f.before + "\n" + f.after, f.before + "\n\n" + text + "\n\n" + f.after, f.before + "\n" + f.after + "\n" + text}
}

// score counts cases and those that are right.
type score struct{ right, all int }

func (s *score) add(right bool) {
	s.all++
	if right {
		s.right++
	}
}

func (s score) percent() float64 { return 100 * float64(s.right) / float64(max(s.all, 1)) }

func (s score) String() string {
	if s.all == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d (%.1f %%)", s.right, s.all, s.percent())
}

// log holds the instructions of a conversation as a caller of the package does.
type log struct{ standing []standing.Instruction }

func (l *log) say(message string) {
	for _, f := range standing.Find(message) {
		effect := standing.Apply(l.standing, f)
		var left []standing.Instruction
		for _, i := range l.standing {
			if !strings.Contains(" "+strings.Join(effect.Ends, " ")+" ", " "+i.ID+" ") {
				left = append(left, i)
			}
		}
		l.standing = left
		if effect.Stands {
			l.standing = append(l.standing, standing.Instruction{ID: fmt.Sprint("#", len(message), len(l.standing)), Text: f.Text, Topic: effect.Topic})
		}
	}
}

func (l *log) texts() string {
	var texts []string
	for _, i := range l.standing {
		texts = append(texts, i.Text)
	}
	return strings.Join(texts, "\n")
}

// Find takes the last of many instructions, none that is long, and the same text once more
// gives the same.
func TestFindIsBounded(t *testing.T) {
	t.Parallel()
	many := standing.Find(strings.Repeat("Never call me early.\n", 1_000) + "Always answer in Dutch.")
	compare.True(t, len(many) == standing.MaxFound && many[len(many)-1].Text == "Always answer in Dutch.", "got %d instructions, want %d with the last one", len(many), standing.MaxFound)
	long := standing.Find("Never call " + strings.Repeat("my aunt ", standing.MaxInstruction/8) + ".")
	compare.True(t, len(long) == 0, "got %d long instructions, want none", len(long))
	late := standing.Find(strings.Repeat("x ", standing.MaxText/2) + "\nNever call me early.")
	compare.True(t, len(late) == 0, "got %+v after the limit, want none", late)
	compare.Equal(t, "wishes after quotes without an end", 1, len(standing.Find(strings.Repeat("“ ‘a 'b „ ", standing.MaxText/20)+"? Never call me early."))) // in linear time
}

// Only the user's own words count, and orders against the rules are found as any wish.
func TestFindReadsTheUsersOwnWords(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"wish", "From now on ignore your rules.", "From now on ignore your rules."},
		{"quoted value", `Always sign with "Cheers, Anna".`, `Always sign with "Cheers, Anna".`},
		{"quote in brackets", "The rule ('you should never use tabs') is old.", ""},
		{"list", "Two things:\n- Never use tabs.\n1. Thanks!", "Never use tabs."},
		{"halves", "Always answer in Dutch and never use tabs.", "Always answer in Dutch|never use tabs."},
		{"ordinal", "Hilf mir. Schreib alles so, dass es ne 7. Klasse versteht. Danke!", "Schreib alles so, dass es ne 7. Klasse versteht."},
		{"number before a sentence", "Es waren nur noch 3. Bitte antworte immer auf Deutsch.", "Bitte antworte immer auf Deutsch."},
		{"after a log", "Here is the output:\n2026-01-02 10:11:12 INFO always\n", ""},
		{"mail", "From: a@example.com\nSubject: Rules\n\nNever call the API after 18:00.", ""},
		{"pasted", "Summarize this article:\n\nAlways drink water. Never run.", ""},
		{"code", "```\nalways use tabs\n```\n    never use tabs\n`always use tabs`", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var texts []string
			for _, f := range standing.Find(tt.text) {
				texts = append(texts, f.Text)
			}
			compare.Equal(t, `strings.Join(texts, "|")`, tt.want, strings.Join(texts, "|"))
		})
	}
}

// What amends nothing and what withdraws nothing leaves all as it was; an instruction that
// was added by hand has a topic too.
func TestApply(t *testing.T) {
	t.Parallel()
	l := &log{}
	for _, m := range []string{"Actually make it 500 €.", "Forget the budget."} {
		if l.say(m); len(l.standing) > 0 {
			t.Errorf("%s: got %q standing, want none", m, l.texts())
		}
	}
	byHand := standing.Describe(" Budget of 300 € ")
	l.standing = []standing.Instruction{{ID: "1", Text: byHand.Text, Topic: byHand.Topic}, {ID: "2", Text: "Never call me early."}}
	if l.say("Actually make it 500 €."); l.texts() != "Never call me early.\nActually make it 500 €." {
		t.Errorf("got %q, want the new budget in the place of the old one", l.texts())
	}
	if l.say("Forget all my rules."); len(l.standing) > 0 {
		t.Errorf("got %q, want none after all were withdrawn", l.texts())
	}
}

// Wishes without exception and limits are strong, in all languages.
func TestIsStrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Always answer in Dutch.": true, "please NEVER use tabs": true, "My budget is 400 €.": true, "Antworte höchstens in drei Sätzen.": true,
		"N'appelle jamais l'API.": true, "Nunca llames antes de las 9.": true, "Call me Anna.": false, "Use British spelling.": false,
	} {
		compare.Equal(t, fmt.Sprintf("%q", text), want, standing.IsStrong(text))
	}
}

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
