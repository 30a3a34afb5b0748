package compaction

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode"

	"bobbin/app/core"
)

// The bounds of what is found.
const (
	maxHits      = 40    // messages with words of the question
	withBeside   = 10    // of these, the first have their neighbors
	beside       = 1     // neighbors on each side
	hitSize      = 500   // characters of a message with words of the question
	besideSize   = 240   // bytes of a neighbor
	questionSize = 2_000 // bytes of the message that count: its beginning
)

// Finder finds the passages that a search for the message's own words finds, and what was
// said right before and after. Safe for concurrent use.
type Finder struct{ Search core.SearchStore }

// Recall returns messages of the session for the question, the best first, each followed by
// its neighbors, none twice. The Content of each is what can be quoted of it, in a single
// line. None is found for a question without words, nor those of shown, by seq.
func (f Finder) Recall(ctx context.Context, session core.Session, question string, shown map[int64]bool) ([]core.Message, error) {
	// Quotation marks, asterisks and the minus before a word mean nothing in a question.
	words := strings.FieldsFunc(core.Clip(question, questionSize), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.In(r, unicode.Quotation_Mark) || r == '*' || r == '"'
	})
	for i, w := range words {
		words[i] = strings.TrimLeft(w, "-–−‐")
	}
	text := strings.Join(words, " ")
	if text == "" {
		return nil, nil
	}
	page, err := f.Search.Messages(ctx, core.Tenant{Owner: session.Owner, User: session.UserID}, core.SearchQuery{
		PageQuery: core.PageQuery{Limit: maxHits}, SessionID: session.ID, Text: text, Excerpt: hitSize, Around: beside, Except: shown,
	})
	if errors.Is(err, core.ErrInvalid) { // no word to search for
		return nil, nil
	}
	var out []core.Message
	add := func(n core.Neighbor, text string) {
		out = append(out, core.Message{ID: n.MessageID, Seq: n.Seq, Role: n.Role, Author: n.Author, Named: n.Author != "", Content: text, CreatedAt: n.CreatedAt})
	}
	known := map[int64]bool{}
	for _, h := range page.Items {
		known[h.Seq] = true
	}
	for i, h := range page.Items {
		add(core.Neighbor{MessageID: h.MessageID, Seq: h.Seq, Role: h.Role, Author: h.Author, CreatedAt: h.CreatedAt}, singleLine(h.Excerpt))
		for _, n := range slices.Concat(h.Before, h.After) {
			if i < withBeside && !known[n.Seq] && !shown[n.Seq] {
				known[n.Seq] = true
				add(n, core.Clip(singleLine(n.Excerpt), besideSize))
			}
		}
	}
	return slices.DeleteFunc(out, func(m core.Message) bool { return m.Content == "" }), err
}

func singleLine(text string) string { return strings.Join(strings.Fields(text), " ") }
