package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// messageSearch finds messages by their words, newest first.
type messageSearch interface {
	Messages(ctx context.Context, scope core.Scope, q core.SearchQuery) (core.SearchPage, error)
}

// SearchHistory finds what was said in a session, summarized or not.
type SearchHistory struct {
	search messageSearch
}

// NewSearchHistory returns the tool search_history.
func NewSearchHistory(search messageSearch) *SearchHistory { return &SearchHistory{search: search} }

// What one call answers with: at most this many quotations, of this many characters.
const (
	mostQuotes = 8
	quoteSize  = 600
)

// Spec tells the model what the tool is and takes.
func (*SearchHistory) Spec() llm.ToolSpec {
	return llm.ToolSpec{
		Name: core.ToolSearchHistory,
		Description: "Searches everything that was ever said in this conversation, tool results included, also what you see only as a summary or not at all. " +
			"Use it when the user refers to something that you do not see, when the summary names something to look up, and whenever exact words, numbers, names, " +
			"paths, commands or error texts matter; use it before you say that you do not know. Answers with quotations, newest first, with message ids and dates.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"words that must all be in the message, in any order; \"words in quotes\" must follow each other, ` +
			`-word must not be there, begin* stands for all words that begin so. Use few, telling words"},` +
			`"role":{"type":"string","enum":["user","assistant","tool"],"description":"only what the user, the assistant or a tool said"}},` +
			`"required":["query"],"additionalProperties":false}`),
	}
}

// Idempotent reports true: searching changes nothing.
func (*SearchHistory) Idempotent() bool { return true }

// Call answers with quotations from the call's own session.
func (s *SearchHistory) Call(ctx context.Context, call Call) (string, error) {
	const example = `{"query": "invoice 4711"}`
	args, err := arguments[struct {
		Query string    `json:"query"`
		Role  core.Role `json:"role"`
	}](call.Arguments, example)
	if err != nil {
		return "", err
	}
	switch args.Role {
	case "", core.RoleUser, core.RoleAssistant, core.RoleTool:
	default:
		return "", fmt.Errorf("the role must be user, assistant or tool; expected a JSON object such as %s", example)
	}
	page, err := s.search.Messages(ctx, core.Scope{Owner: call.Session.Owner}, core.SearchQuery{
		PageQuery: core.PageQuery{Limit: mostQuotes}, Text: args.Query, SessionID: call.Session.ID, Role: args.Role, Excerpt: quoteSize,
	})
	var told *core.Error
	switch {
	case errors.As(err, &told) && errors.Is(err, core.ErrInvalid):
		return "", fmt.Errorf("%s; expected a JSON object such as %s", told.Message, example)
	case err != nil:
		return "", errors.New("the conversation cannot be searched at the moment")
	}
	return quotations(page, call.Session), nil
}

// quotations returns the hits for a model to read.
func quotations(page core.SearchPage, session core.Session) string {
	var b strings.Builder
	switch n := len(page.Items); {
	case n == 0:
		b.WriteString("Nothing in this conversation has these words. Try fewer or other words, or the beginning of one, such as invoic*.")
	case page.NextCursor != nil:
		fmt.Fprintf(&b, "The %d newest messages that have these words; there are more: add words to see others.", n)
	case n == 1:
		b.WriteString("One message has these words.")
	default:
		fmt.Fprintf(&b, "%d messages have these words, newest first.", n)
	}
	if page.Indexing {
		b.WriteString(" Older messages are still being made searchable: some may be missing.")
	}
	zone, err := location(session.Timezone)
	if err != nil {
		zone = time.UTC
	}
	for _, h := range page.Items {
		fmt.Fprintf(&b, "\n\n[message %s, #%d, %s, %s]\n%s", h.MessageID, h.Seq, h.Role, h.CreatedAt.In(zone).Format("2 January 2006, 15:04 MST"), h.Excerpt)
	}
	return b.String()
}
