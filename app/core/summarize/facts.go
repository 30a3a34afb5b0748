package summarize

import (
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// The kinds of facts.
const (
	FactPath    = "path"
	FactCommand = "command"
	FactError   = "error"
	FactURL     = "url"
)

// Fact is an entry that the ledger keeps of a conversation.
type Fact struct {
	Kind string
	Text string // one line, as in the messages except for white space
}

// Facts returns what the ledger extracts from the messages besides the user's wishes, in
// the order of the last mention; of very many of a kind the newest. Facts that are too
// long for an entry are left out.
func Facts(messages []core.Message) []Fact {
	l := newLedger()
	l.extractFacts(messages)
	type mention struct {
		Fact
		at int
	}
	var found []mention
	for k := files; k < kinds; k++ {
		for _, e := range l.entries[k] {
			if !strings.HasSuffix(e.text, prompttext.Ellipsis) {
				found = append(found, mention{Fact{k.factKind(), e.text}, e.at})
			}
		}
	}
	slices.SortFunc(found, func(a, b mention) int { return a.at - b.at })
	facts := make([]Fact, len(found))
	for i, m := range found {
		facts[i] = m.Fact
	}
	return facts
}

// factKind returns the kind of fact that an entry is.
func (k kind) factKind() string {
	return [kinds]string{"", FactPath, FactCommand, FactError, FactURL}[k]
}
