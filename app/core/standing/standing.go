package standing

import (
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
	Language string // of the rule that recognized it: en, de, fr or es; empty = not recognized
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
			f, ok := part.examine()
			if !ok {
				f, ok = part.examineByGrammar()
			}
			if ok {
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
	f := Found{Text: text, Topic: topicOf(fold(text))}
	for _, l := range languages() {
		if l.sets(fold(text)) {
			f.Language = l.name
			break
		}
	}
	return f
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
