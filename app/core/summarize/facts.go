package summarize

import (
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/cut"
)

// The kinds of facts.
const (
	FactPath    = "path"
	FactCommand = "command"
	FactError   = "error"
	FactURL     = "url"
)

// Fact is something that the ledger keeps of a conversation.
type Fact struct {
	Kind string
	Text string // one line; as the messages have it but for its blanks
}

// Facts returns what the ledger extracts from the messages, in the order of the last
// mention; of very many of a kind the newest. What is too long for an entry, and so
// would stand in it with its beginning only, is left out.
func Facts(messages []core.Message) []Fact {
	l := newLedger()
	l.extract(messages)
	type mention struct {
		Fact
		at int
	}
	var found []mention
	for k := range kinds {
		for _, e := range l.entries[k] {
			if !strings.HasSuffix(e.text, cut.Ellipsis) {
				found = append(found, mention{Fact{k.fact(), e.text}, e.at})
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

// fact returns the kind of fact that an entry is.
func (k kind) fact() string {
	return [kinds]string{FactPath, FactCommand, FactError, FactURL}[k]
}
