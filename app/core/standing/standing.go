package standing

import (
	"slices"
	"strings"
	"sync"
)

// Limits of Find.
const (
	MaxText        = 1 << 20 // bytes of a message that are read
	MaxFound       = 20      // instructions of one message; the last ones count
	MaxInstruction = 500     // characters of an instruction; a longer sentence is none
	maxLines       = 500     // lines that are split into sentences, half of them the last ones
	maxExamined    = 150     // sentences that are examined in full, half of them the last ones
)

// Found is what a sentence of a user says for the whole conversation.
type Found struct {
	Text     string // word for word: a sentence, clause or list item, without blanks around it
	Language string // of the rules that recognized it, such as en; empty = not recognized
	Speaker  string // who says it: for the caller to set, if several people speak; empty = unknown
	// Topic says what the instruction is about in all languages, such as TopicBudget. Empty
	// means that only its own words tell.
	Topic string
	// Withdraws means that it takes back what an earlier one set, and never stands itself.
	Withdraws bool
	// Amends means that it only changes an earlier one ("make it 500 €"): it stands if it
	// finds that one.
	Amends bool
}

// The topics. A speaker has one instruction of each, or one for each thing that its
// words name: a budget for the hotel, another for flights.
const (
	TopicBudget   = "budget"
	TopicLanguage = "language" // of the answers
	TopicLength   = "length"   // of the answers
	TopicName     = "name"     // of the user
	TopicAddress  = "address"  // formal or informal: du or Sie
	TopicUnits    = "units"
	TopicDiet     = "diet"
	// TopicAll is of a withdrawal of all instructions.
	TopicAll = "all"
)

// Instruction is one that stands.
type Instruction struct {
	ID      string // of the caller's
	Text    string
	Speaker string // who set it; empty = unknown
	Topic   string // as Apply returned it
}

// Effect is what an instruction does to those that stand before it.
type Effect struct {
	Ends   []string // IDs of those that it replaces or withdraws, in their order
	Stands bool     // whether it stands itself; not if it is a withdrawal, or amends nothing
	Topic  string   // to store with it: its own, or the one of what it amends
}

// Find returns what the user's message sets, changes or withdraws for the whole
// conversation, in the order of the text.
func Find(text string) []Found {
	var found []Found
	for _, s := range candidates(text) {
		for _, part := range s.parts() {
			if f, ok := part.examine(); ok {
				found = append(found, f)
			}
		}
	}
	return found[max(len(found)-MaxFound, 0):]
}

// Describe returns the text as an instruction that was not recognized but added by hand: it
// stands, and has the topic that its words name.
func Describe(text string) Found {
	text = strings.TrimSpace(text)
	found, _ := sentence{text: text, masked: text}.examine()
	return Found{Text: text, Language: found.Language, Topic: topicOf(fold(text))}
}

// examine returns what the sentence says for the whole conversation, if it does.
func (s sentence) examine() (Found, bool) {
	folded := fold(s.masked)
	words := strings.Fields(folded)
	if len(words) == 0 {
		return Found{}, false
	}
	n := len(words)
	// A word behind a statement makes no question: "never do it, ok?"
	isTag := n > 2 && words[n-2] == "," && slices.Contains(strings.Fields("ok okay right yes please vale no si ja gut oder gell d'accord hein thanks"), words[n-1])
	isQuestion := strings.HasSuffix(s.text, "?") && !isTag
	for _, l := range languagesOf(words) {
		if f, ok := l.examine(words, isQuestion); ok {
			f.Text, f.Language, f.Topic = s.text, l.name, topicOf(folded)
			return f, true
		}
	}
	return Found{}, false
}

// examine returns what the words say by the rules of the language, if they do.
func (l *language) examine(words []string, isQuestion bool) (Found, bool) {
	starts := l.startsOf(words)
	asked := l.longest(kindRequest, words, 0)
	if isQuestion && asked == 0 {
		return Found{}, false
	}
	says := func(kind string) bool {
		return asked > 0 && l.matches(kind, words[asked:], l.startsOf(words[asked:])) || !isQuestion && kind != kindAsk && l.matches(kind, words, starts)
	}
	for _, kind := range []string{kindWithdraw, kindSet, kindAmend, kindAsk} {
		if says(kind) {
			return Found{Withdraws: kind == kindWithdraw, Amends: kind == kindAmend}, !l.matches(kindNever, words, starts)
		}
	}
	return Found{}, false
}

// parts returns the sentence, or its two halves if each is an instruction by itself.
func (s sentence) parts() []sentence {
	for _, conjunction := range []string{"; ", " and ", " und ", " et ", " y "} {
		i := strings.Index(s.masked, conjunction)
		if i < 0 {
			continue
		}
		j := i + len(conjunction)
		first := sentence{text: strings.TrimRight(s.text[:i], " ,"), masked: strings.TrimRight(s.masked[:i], " ,")}
		second := sentence{text: s.text[j:], masked: s.masked[j:]}
		a, ok := first.examine()
		if !ok || a.Withdraws || a.Amends {
			continue
		}
		if b, ok := second.examine(); ok && !b.Withdraws && !b.Amends && a.Topic != b.Topic {
			return []sentence{first, second}
		}
	}
	return []sentence{s}
}

// strongWords are those of wishes that hold without exception, and of limits.
const strongWords = `always never must limit maximum max budget
	immer nie niemals stets muss musst maximal hoechstens
	toujours jamais dois devez plafond limite
	siempre nunca jamas debes maximo tope presupuesto`

//nolint:gochecknoglobals // immutable
var strongSet = sync.OnceValue(func() map[string]bool { return wordSet(strongWords) })

// IsStrong reports whether an instruction says that it holds without exception, or sets a limit:
// where not all have room, it is more important than others.
func IsStrong(text string) bool {
	return hasWordOf(text, strongSet()) || topicOf(fold(text)) == TopicBudget
}
