package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// The bounds of the result of a call.
const (
	maxQuotes      = 50    // messages that were found
	withMostBeside = 5     // of these, the first have mostBeside neighbors …
	mostBeside     = 4     // … on each side (measured in docs/EVALUATION.md)
	withBeside     = 8     // the others up to this one have quotesBeside
	quotesBeside   = 2     // on each side
	quoteSize      = 600   // characters of a message that was found
	besideSize     = 300   // characters of a neighbor
	maxQuoted      = 3_500 // tokens, about
)

// aroundHits is how many neighbors are read: one more than is quoted shows which passages join.
const aroundHits = mostBeside + 1

// historyExample is of the arguments of a call.
const historyExample = `{"query": "When was invoice 4711 paid?"}`

// NewSearchHistory returns the tool search_history. It answers with passages from the call's own session, summarized
// or not, and searches as core.AgentSearch does.
func NewSearchHistory(search core.SearchStore) *Custom {
	return builtIn(llm.ToolSpec{
		Name: core.ToolSearchHistory,
		Description: "Searches all messages of this conversation, tool results and what you see only as a summary included. " +
			"Use it when the user refers to something that you do not see, when exact words, numbers, names or paths matter, and before you say that you do not know. " +
			"Returns passages that you do not see already, the most relevant first.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"what you want to know: a question, or words that the passage probably has, with synonyms. Rare words count most; ` +
			`\"words in quotes\" must be in it, -word must not, begin* is a prefix"},` +
			`"role":{"type":"string","enum":["user","assistant","tool"]},` +
			`"author":{"type":"string","description":"name or id of the person who wrote it"},` +
			`"after":{"type":"string","description":"of this day or time or later: 2026-01-31 or 2026-01-31T12:00:00Z"},` +
			`"before":{"type":"string","description":"before this day or time"},` +
			`"skip":{"type":"integer","minimum":0,"description":"how many messages to leave out, to read on"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}, historyExample, func(ctx context.Context, call Call, args historyArguments) (string, error) {
		return args.searchHistory(ctx, search, call)
	})
}

// historyArguments are the arguments of a call.
type historyArguments struct {
	Query  string    `json:"query"`
	Role   core.Role `json:"role"`
	Author string    `json:"author"`
	After  string    `json:"after"`
	Before string    `json:"before"`
	Skip   int       `json:"skip"`
}

// parseDay parses a day or a time; the zero time if there is none.
func parseDay(name, text string, zone *time.Location) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s must be a day or a time such as 2026-01-31 or 2026-01-31T12:00:00Z", name)
}

// searchHistory returns the result of a call.
func (a historyArguments) searchHistory(ctx context.Context, search core.SearchStore, call Call) (string, error) {
	zone, err := loadTimeZone(call.Session.Timezone)
	if err != nil {
		zone = time.UTC
	}
	after, err := parseDay("after", a.After, zone) // days are those of the zone
	before, err2 := parseDay("before", a.Before, zone)
	if err = cmp.Or(err, err2); err != nil {
		return "", fmt.Errorf("%w; expected a JSON object such as %s", err, historyExample)
	}
	query := core.SearchQuery{
		PageQuery: core.PageQuery{Limit: maxQuotes}, Text: a.Query, Role: a.Role, Author: a.Author, After: after, Before: before, Skip: a.Skip, Around: aroundHits, Except: call.Shown,
	}
	// The model sees the messages of this run: without Before the question would be found first.
	if !call.AskedAt.IsZero() && (query.Before.IsZero() || query.Before.After(call.AskedAt)) {
		query.Before = call.AskedAt
	}
	page, err := FindHistory(ctx, search, call.Session, query)
	var public *core.Error
	switch {
	case errors.As(err, &public) && public.Code == core.CodeSearchTime:
		return "", errors.New(public.Message)
	case errors.As(err, &public) && errors.Is(err, core.ErrInvalid):
		return "", fmt.Errorf("%s; expected a JSON object such as %s", public.Message, historyExample)
	case err != nil:
		return "", errors.New("the conversation cannot be searched at the moment")
	}
	return history{zone: zone, shown: call.Shown}.format(page, a.Skip), nil
}

// FindHistory returns the messages of the session that match the query, with excerpts as in the
// result of a call. core.ErrInvalid is an invalid query.
func FindHistory(ctx context.Context, search core.SearchStore, session core.Session, q core.SearchQuery) (core.SearchPage, error) {
	q.SessionID, q.Excerpt = session.ID, quoteSize
	return search.Messages(ctx, core.Tenant{Owner: session.Owner, User: session.UserID}, q)
}

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

// format returns the passages in the order of their best messages, as many as fit, and how to read on.
func (h history) format(page core.SearchPage, skipped int) string {
	var quoted []core.SearchHit
	var text string
	for n := 1; n <= len(page.Items); n++ {
		longer := h.writePassages(joinPassages(page.Items[:n], h.shown))
		runes := utf8.RuneCountInString(longer)
		others := (len(longer) - runes) / 2 // characters of more than a byte, about
		// About how many tokens it has, rather too many than too few.
		if tokens := (runes-min(runes, others))/4 + others; n > 1 && tokens > maxQuoted {
			break
		}
		quoted, text = page.Items[:n], longer
	}
	var b strings.Builder
	total := len(page.Items) + skipped
	if page.Total != nil {
		total = max(*page.Total, total)
	}
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
