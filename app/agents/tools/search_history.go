package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// SearchHistory searches the messages of a session, summarized or not.
type SearchHistory struct {
	search core.SearchStore
}

// NewSearchHistory returns the tool search_history, which searches as core.AgentSearch does.
func NewSearchHistory(search core.SearchStore) *SearchHistory { return &SearchHistory{search: search} }

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

// aroundHits is how many neighbors on each side are read: one more than is quoted shows which
// passages follow each other.
const aroundHits = mostBeside + 1

// Spec returns the definition for the model.
func (*SearchHistory) Spec() llm.ToolSpec {
	return llm.ToolSpec{
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
	}
}

// Idempotent reports true: searching changes nothing.
func (*SearchHistory) Idempotent() bool { return true }

// historyArguments are the arguments of a call.
type historyArguments struct {
	Query  string    `json:"query"`
	Role   core.Role `json:"role"`
	Author string    `json:"author"`
	After  string    `json:"after"`
	Before string    `json:"before"`
	Skip   int       `json:"skip"`
}

// searchQuery returns the query of the arguments. Days are those of the zone.
func (a historyArguments) searchQuery(zone *time.Location) (core.SearchQuery, error) {
	switch a.Role {
	case "", core.RoleUser, core.RoleAssistant, core.RoleTool:
	default:
		return core.SearchQuery{}, errors.New("the role must be user, assistant or tool")
	}
	if a.Skip < 0 {
		return core.SearchQuery{}, errors.New("skip must not be negative")
	}
	after, err := parseDay("after", a.After, zone)
	if err != nil {
		return core.SearchQuery{}, err
	}
	before, err := parseDay("before", a.Before, zone)
	return core.SearchQuery{
		PageQuery: core.PageQuery{Limit: maxQuotes}, Text: a.Query, Role: a.Role, Author: a.Author, After: after, Before: before, Skip: a.Skip, Around: aroundHits,
	}, err
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

// Call answers with passages from the call's own session.
func (s *SearchHistory) Call(ctx context.Context, call Call) (string, error) {
	const example = `{"query": "When was invoice 4711 paid?"}`
	args, err := parseArguments[historyArguments](call.Arguments, example)
	if err != nil {
		return "", err
	}
	zone, err := loadTimeZone(call.Session.Timezone)
	if err != nil {
		zone = time.UTC
	}
	query, err := args.searchQuery(zone)
	if err != nil {
		return "", fmt.Errorf("%w; expected a JSON object such as %s", err, example)
	}
	query.Except = call.Shown
	// The model sees the messages of this run: without Before the question would be found first.
	if !call.AskedAt.IsZero() && (query.Before.IsZero() || query.Before.After(call.AskedAt)) {
		query.Before = call.AskedAt
	}
	page, err := s.Find(ctx, call.Session, query)
	var public *core.Error
	switch {
	case errors.As(err, &public) && public.Code == core.CodeSearchTime:
		return "", errors.New(public.Message)
	case errors.As(err, &public) && errors.Is(err, core.ErrInvalid):
		return "", fmt.Errorf("%s; expected a JSON object such as %s", public.Message, example)
	case err != nil:
		return "", errors.New("the conversation cannot be searched at the moment")
	}
	return history{zone: zone, shown: call.Shown}.format(page, args.Skip), nil
}

// Find returns the messages of the session that match the query, with excerpts as in the
// result of Call. core.ErrInvalid is an invalid query.
func (s *SearchHistory) Find(ctx context.Context, session core.Session, q core.SearchQuery) (core.SearchPage, error) {
	q.SessionID, q.Excerpt = session.ID, quoteSize
	return s.search.Messages(ctx, core.Tenant{Owner: session.Owner, User: session.UserID}, q)
}
