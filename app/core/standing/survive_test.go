package standing_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/standing"
	"bobbin/tests/must"
)

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
		if got := lost(talk.texts()); len(got) > 0 {
			t.Errorf("%s: lost %q", talk.ID, got)
		}
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
