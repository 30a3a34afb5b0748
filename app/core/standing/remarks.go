package standing

import (
	"slices"
	"strings"
)

// A remark may change or withdraw an instruction without saying so plainly: "no need to be so formal,
// Jim will do". It ends nothing, since an instruction that is lost is worse than one too many. It
// stands beside the newest instruction that it is about: who reads both knows that the later one wins.

// Limits of remarks.
const (
	maxRemarks      = 2   // that stand beside an instruction, the newest
	maxRemark       = 240 // bytes; what is longer rather tells a story
	maxFoundRemarks = 5   // of a message, the last ones
)

// remarkPatterns match sentences that may change something.
func remarkPatterns() []string {
	return []string{
		`[swap change nomore noneed end now onward again lets too]`,
		`[may ok please want must only lasting name form pronoun]`,
		`start [not no]* [verb forbid behave leave]`,
	}
}

// examineRemark returns the sentence as a remark, if it can be one.
func (s sentence) examineRemark() (Found, bool) {
	if len(s.text) > maxRemark {
		return Found{}, false
	}
	g := theGrammar()
	isQuestion := strings.HasSuffix(s.text, "?")
	for _, r := range theLexicon().read(fold(s.masked)) {
		if g.remarks.match(r.tags) && !g.never.match(r.tags) && (!isQuestion || g.requests.match(r.tags)) {
			return Found{Text: s.text, Language: r.language, Amends: true, IsRemark: true}, true
		}
	}
	return Found{}, false
}

// Subject is what a text is about.
type Subject struct {
	content

	topic  string
	things []string // that it names
	verbs  []string // what is to be done, or not
}

// SubjectOf returns what the text is about.
func SubjectOf(text string) Subject {
	s := Subject{content: contentOf(text), topic: topicOf(fold(text))}
	g := theGrammar()
	for i, tag := range []rune(s.tags) {
		switch phrase := s.phrases[i]; {
		case stopSet()[phrase]:
		case strings.ContainsRune(g.things, tag):
			s.things = append(s.things, phrase)
		case strings.ContainsRune(g.verbs, tag):
			s.verbs = append(s.verbs, phrase)
		}
	}
	return s
}

// IsAbout reports whether a remark with this subject is about an instruction: both have the same topic,
// name the same thing, or have values of the same kind. A remark that something is not needed can name
// what is to be done ("no need to ask me"), or money.
func (s Subject) IsAbout(instruction Subject) bool {
	switch {
	case s.topic != "" && s.topic != TopicAll && s.topic == instruction.topic, haveCommon(s.things, instruction.things):
		return true
	case s.isMoney && instruction.isMoney, len(s.numbers) > 0 && len(instruction.numbers) > 0 && common(s.units, instruction.units) > 0:
		return true
	case theGrammar().lifts.match(s.tags) && (haveCommon(s.verbs, instruction.verbs) || instruction.isMoney && s.namesMoney()):
		return true
	}
	for kind := range s.values {
		if len(instruction.values[kind]) > 0 {
			return true
		}
	}
	return false
}

// namesMoney reports whether the text is about money without an amount: "price is no longer an issue".
func (s Subject) namesMoney() bool {
	return slices.ContainsFunc(s.phrases, func(p string) bool {
		return hasEntry("money|money's|moneys|price|prices|cost|costs|budget|geld|preis|preise|kosten|argent|prix|cout|couts|dinero|precio|precios|presupuesto", p)
	})
}

// haveCommon reports whether a word of one list differs from one of the other in its ending only.
func haveCommon(words, others []string) bool {
	return slices.ContainsFunc(words, func(w string) bool {
		return slices.ContainsFunc(others, func(o string) bool { return isInflected(w, o) })
	})
}

// isInflected is stricter than sameWord, as one word decides.
func isInflected(a, b string) bool {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n >= 4 && n+3 >= max(len(a), len(b))
}

// remarkOn returns the effect of what may change an instruction: it stands beside the newest one that
// it is about, of these or otherwise of all, in place of the oldest remark there.
func remarkOn(standing []Instruction, found Found, these []Instruction) Effect {
	subject := SubjectOf(found.Text)
	for _, i := range slices.Backward(standing) {
		isAbout := slices.Contains(ids(these), i.ID) || len(these) == 0 && subject.IsAbout(i.subject())
		if i.About == "" && isAbout {
			older := remarksOn(standing, i.ID)
			return Effect{Ends: older[:max(len(older)-maxRemarks+1, 0)], Stands: true, About: i.ID}
		}
	}
	return Effect{}
}

// remarksOn returns the IDs of the remarks on the instruction, oldest first.
func remarksOn(standing []Instruction, id string) (out []string) {
	for _, i := range standing {
		if i.About == id {
			out = append(out, i.ID)
		}
	}
	return out
}
