package tools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// history writes what a search found as text for the model.
type history struct {
	zone  *time.Location
	shown map[int64]bool // is not quoted again, by seq
}

// quote is a message to be quoted.
type quote struct {
	core.Neighbor
	found bool // by the search; else it stands beside what was found
}

// passage is one or more messages in a row.
type passage []quote

// format returns the passages in the order of their best messages, as many as fit, and
// how to read on.
func (h history) format(page core.SearchPage, skipped int) string {
	var quoted []core.SearchHit
	var text string
	for n := 1; n <= len(page.Items); n++ {
		longer := h.writePassages(joinPassages(page.Items[:n], h.shown))
		if n > 1 && tokensAbout(longer) > maxQuoted {
			break
		}
		quoted, text = page.Items[:n], longer
	}
	var b strings.Builder
	total := max(page.Total, len(page.Items)+skipped)
	switch rest := total - skipped - len(quoted); {
	case len(quoted) == 0 && page.NextCursor != nil:
		b.WriteString("None of the messages that were looked at fits, and there are more: use more specific words.")
	case len(quoted) == 0 && skipped > 0:
		b.WriteString("No more messages fit this search.")
	case len(quoted) == 0:
		b.WriteString("No message that you do not see already fits this search. Try other words: synonyms, names, the beginning of a word such as invoic*.")
	case rest > 0:
		fmt.Fprintf(&b, "The %d most relevant messages, the first of them with those before and after. %d more fit less well: to read on, search again with \"skip\": %d, or use more specific words.",
			len(quoted), rest, skipped+len(quoted))
	case len(quoted) == 1:
		b.WriteString("One message fits, with those before and after.")
	default:
		fmt.Fprintf(&b, "%d messages fit, the first of them with those before and after.", len(quoted))
	}
	if page.Indexing {
		b.WriteString(" Older messages are still being indexed: some may be missing.")
	}
	if page.Meaning == core.MeaningUnavailable {
		b.WriteString(" The embedding model does not answer: only messages with these words were looked for.")
	}
	return b.String() + text
}

// tokensAbout returns about how many tokens a text has, rather too many than too few.
func tokensAbout(text string) int {
	runes := utf8.RuneCountInString(text)
	others := (len(text) - runes) / 2 // characters of more than a byte, about
	return (runes-min(runes, others))/4 + others
}

// joinPassages returns the results, the first of them with their neighbors, as passages, none
// twice, in the order of the results: further messages find more than their neighbors do.
func joinPassages(hits []core.SearchHit, shown map[int64]bool) []passage {
	quotes := map[int64]quote{}
	for i, h := range hits[:min(len(hits), withBeside)] {
		n := quotesBeside
		if i < withMostBeside {
			n = mostBeside
		}
		for _, n := range slices.Concat(h.Before[max(0, len(h.Before)-n):], h.After[:min(n, len(h.After))]) {
			if _, known := quotes[n.Seq]; !known && !shown[n.Seq] {
				n.Excerpt = prompttext.Characters(n.Excerpt, besideSize)
				quotes[n.Seq] = quote{Neighbor: n}
			}
		}
	}
	rank := map[int64]int{}
	for i, h := range hits {
		rank[h.Seq] = i - len(hits)
		quotes[h.Seq] = quote{core.Neighbor{MessageID: h.MessageID, Seq: h.Seq, Role: h.Role, Author: h.Author, Excerpt: h.Excerpt, CreatedAt: h.CreatedAt}, true}
	}
	next := map[int64]int64{}
	for _, h := range hits {
		last := int64(0)
		for _, n := range slices.Concat(h.Before, []core.Neighbor{{Seq: h.Seq}}, h.After) {
			if last > 0 {
				next[last] = n.Seq
			}
			last = n.Seq
		}
	}
	var out []passage
	for _, q := range slices.SortedFunc(maps.Values(quotes), func(a, b quote) int { return cmp.Compare(a.Seq, b.Seq) }) {
		if n := len(out); n > 0 && next[out[n-1][len(out[n-1])-1].Seq] == q.Seq {
			out[n-1] = append(out[n-1], q)
			continue
		}
		out = append(out, passage{q})
	}
	best := func(p passage) int {
		least := 0
		for _, q := range p {
			least = min(least, rank[q.Seq])
		}
		return least
	}
	slices.SortStableFunc(out, func(a, b passage) int { return cmp.Compare(best(a), best(b)) })
	return out
}

// writePassages writes the passages; a line divides two of them.
func (h history) writePassages(list []passage) string {
	var b strings.Builder
	for i, p := range list {
		if b.WriteString("\n\n"); i > 0 {
			b.WriteString("---\n\n")
		}
		for k, q := range p {
			if k > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(h.heading(p, k) + "\n" + prompttext.Harmless(q.Excerpt))
		}
	}
	return b.String()
}

// heading returns the line above the k-th message of a passage: who wrote it and when, if not
// in the same minute as the one before. Messages that were found have their id.
func (h history) heading(p passage, k int) string {
	q, line := p[k], "["
	if q.found {
		line += fmt.Sprintf("message %s, ", q.MessageID)
	}
	line += fmt.Sprintf("#%d, %s", q.Seq, q.Role)
	if q.Author != "" {
		line += " " + prompttext.Harmless(prompttext.Line(q.Author, maxAuthor))
	}
	if at := h.minute(q); k == 0 || at != h.minute(p[k-1]) {
		line += ", " + at
	}
	if q.found && len(p) > 1 {
		line += ", found"
	}
	return line + "]"
}

// minute returns when the message was written.
func (h history) minute(q quote) string {
	return q.CreatedAt.In(h.zone).Format("2 January 2006, 15:04 MST")
}

// maxAuthor is how many characters of an author's name are quoted.
const maxAuthor = 60
