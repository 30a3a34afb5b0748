package summarize

import (
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// withoutInstructions returns the messages without what users set in them for the whole
// conversation: what code quotes of them is not in the prompt twice, nor after it was
// withdrawn.
func (r Request) withoutInstructions() []core.Message {
	if len(r.Instructions) == 0 {
		return r.Messages
	}
	texts := map[core.MessageID][]string{}
	for _, i := range r.Instructions {
		texts[i.MessageID] = append(texts[i.MessageID], i.Text)
	}
	messages := slices.Clone(r.Messages)
	for i, m := range messages {
		for _, text := range texts[m.ID] {
			messages[i].Content = strings.Replace(messages[i].Content, text, "", 1)
		}
	}
	return messages
}

// dropInstructions removes the wishes that are instructions, and all wishes of a message
// whose instruction was edited by hand: its own words are not known.
func (l *ledger) dropInstructions(instructions []core.StandingInstruction) {
	for _, i := range instructions {
		text := prompttext.Line(prompttext.Harmless(i.Text), entryBytes)
		edited := i.EditedAt != nil && i.Seq > 0
		for key, e := range l.entries[wishes] {
			if strings.Contains(key, text) || strings.Contains(text, key) || edited && e.ref == strconv.FormatInt(i.Seq, 10) {
				delete(l.entries[wishes], key)
			}
		}
	}
}
