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

// Find returns what the message sets, changes or withdraws for the whole conversation, in the order of the text.
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

// How alike the words of two instructions must be.
const (
	sameSubject = 0.75 // share of the words of both: the newer one replaces the older
	nearSubject = 0.5  // share of the words of one, if the newer one says that it changes or withdraws something
)

// Apply returns what the instruction does to those that stand before it, oldest first. It
// leaves those of other people as they are.
func Apply(standing []Instruction, found Found) Effect {
	isOthers := func(i Instruction) bool { return found.Speaker != "" && i.Speaker != "" && i.Speaker != found.Speaker }
	matches := findRelated(slices.DeleteFunc(slices.Clone(standing), isOthers), found)
	if len(matches) == 0 && (found.Withdraws || found.Amends) {
		return Effect{}
	}
	e := Effect{Stands: !found.Withdraws, Topic: found.Topic}
	for _, i := range matches {
		e.Ends = append(e.Ends, i.ID)
	}
	if found.Amends {
		e.Topic = matches[len(matches)-1].Topic
	}
	return e
}

// findRelated returns the instructions that are about the same as the one that was found.
func findRelated(standing []Instruction, found Found) []Instruction {
	if found.Topic == TopicAll && found.Withdraws {
		return standing
	}
	terms := termsOf(found.Text)
	if found.Topic != "" {
		if same := sameTopic(standing, found.Topic, subjectTerms(found.Topic, terms)); len(same) > 0 {
			return same
		}
	}
	return sameWords(standing, terms, found.Withdraws || found.Amends)
}

// sameTopic returns the instructions of the topic about the same thing: all that name a
// thing of the terms, else all that name none.
func sameTopic(standing []Instruction, topic string, terms []string) []Instruction {
	var named, general []Instruction
	for _, i := range standing {
		if i.Topic != topic {
			continue
		}
		own := subjectTerms(topic, termsOf(i.Text))
		switch {
		case common(terms, own) > 0:
			named = append(named, i)
		case len(own) == 0:
			general = append(general, i)
		}
	}
	if len(named) > 0 {
		return named
	}
	return general
}

// sameWords returns the instructions with the same words; the most alike one, if the newer one
// changes or withdraws something.
func sameWords(standing []Instruction, terms []string, near bool) []Instruction {
	var out []Instruction
	best := 0.0
	for _, i := range standing {
		own := termsOf(i.Text + " " + i.Topic)
		n := float64(common(terms, own))
		if n == 0 {
			continue
		}
		all := float64(len(terms)+len(own)) - n
		near := near && (n > 1 || len(own) == 1 || len(terms) == 1) // one word of several may mean something else
		switch share := n / float64(min(len(terms), len(own))); {
		case !near && n/all >= sameSubject:
			out = append(out, i)
		case near && share >= nearSubject && share > best:
			best, out = share, []Instruction{i}
		case near && share == best:
			out = nil // it is not certain which one is meant
		}
	}
	return out
}

// common returns how many of the terms are among the others.
func common(terms, others []string) int {
	n := 0
	for _, t := range terms {
		if slices.ContainsFunc(others, func(o string) bool { return sameWord(t, o) }) {
			n++
		}
	}
	return n
}

// subjectTerms returns the terms that name a thing within the topic: none for a name, an address or units.
func subjectTerms(topic string, terms []string) []string {
	if topic == TopicName || topic == TopicAddress || topic == TopicUnits || topic == TopicLength || topic == TopicDiet {
		return nil
	}
	own := strings.Fields(map[string]string{
		TopicBudget:   "budget presupuesto spend ausgeben depenser gastar total limit maximum max euro euros eur dollar dollars pounds franken quiero changed mind raise increase lower set erhoehe senke most can veux sube baja passe pass say disons mach daraus liegt betraegt",
		TopicLanguage: "write speak talk schreib schreibe schreibst sprich rede ecris ecrivez parle parlez escribe habla hable contesta respondas prefiero switch back obliged", //nolint:misspell // other languages
	}[topic]) // they belong to the topic itself, and do not name a thing
	return slices.DeleteFunc(slices.Clone(terms), func(t string) bool { return slices.Contains(own, t) || isLanguage().MatchString(t) })
}
