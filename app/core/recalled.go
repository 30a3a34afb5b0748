package core

import (
	"strings"
	"unicode"
)

// RecalledPassages says which passages a prompt quoted before the message of its run, without
// their texts.
type RecalledPassages struct {
	Tokens   int               `json:"token_count"` // cl100k_base, of the message that quoted them
	Passages []RecalledPassage `json:"passages"`    // in the order of the log
}

// RecalledPassage is a part of a message's text in a single line: bytes of it.
type RecalledPassage struct {
	MessageID MessageID `json:"message_id"`
	From      int       `json:"from"`
	To        int       `json:"to"`
	CutBefore bool      `json:"cut_before,omitempty" doc:"… stands before it."`
	CutAfter  bool      `json:"cut_after,omitempty" doc:"… stands behind it."`
}

// omitted marks omitted text in a quotation.
const omitted = "…"

// FindPassage returns the part of the message that the quotation shows; false if it does not
// show the message's own text.
func FindPassage(m Message, quotation string) (RecalledPassage, bool) {
	line := quotableLine(m.Content)
	for _, p := range []RecalledPassage{{}, {CutAfter: true}, {CutBefore: true}, {CutBefore: true, CutAfter: true}} {
		text, before, after := quotation, true, true
		if p.CutBefore {
			text, before = strings.CutPrefix(text, omitted)
		}
		if p.CutAfter {
			text, after = strings.CutSuffix(text, omitted)
		}
		if i := strings.Index(line, text); i >= 0 && before && after && text != "" {
			p.MessageID, p.From, p.To = m.ID, i, i+len(text)
			return p, true
		}
	}
	return RecalledPassage{}, false
}

// Quote returns the passage of its message; false if the message is shorter by now.
func (p RecalledPassage) Quote(m Message) (string, bool) {
	line := quotableLine(m.Content)
	if p.From < 0 || p.From >= p.To || p.To > len(line) {
		return "", false
	}
	text := line[p.From:p.To]
	if p.CutBefore {
		text = omitted + text
	}
	if p.CutAfter {
		text += omitted
	}
	return text, true
}

// quotableLine returns the text without control characters in a single line, as searches quote
// it.
func quotableLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
