package core

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ToolSearchHistory is the name of the tool by which an agent searches its session. What it
// found is not searched again: quotations of the log would find themselves.
const ToolSearchHistory = "search_history"

// SearchSort is the order of what a search finds.
type SearchSort string

// The orders of a search.
const (
	SortRelevance SearchSort = "relevance" // the best first; a message needs not have all of the words
	SortNewest    SearchSort = "newest"    // the newest first, of the messages that have all of the words
)

// SearchQuery asks for messages.
type SearchQuery struct {
	Text        string     `query:"q" required:"true" min:"1" max:"10240" example:"pump -hall" doc:"A question, or words. At most 10,240 bytes and 8 phrases in quotes; 64 different words count."`
	Sort        SearchSort `query:"sort" enum:"relevance,newest" default:"relevance" doc:"'relevance': the best first. 'newest': the newest first."`
	SessionID   SessionID  `query:"session_id" doc:"Only in this session."` // empty = all in the scope, archived ones too
	UserID      string     `query:"user_id" doc:"Only in sessions of this user."`
	Agent       string     `query:"agent" doc:"Only in sessions with this agent."`
	Author      string     `query:"author" doc:"Only messages of this author, by name or id."`
	Role        Role       `query:"role" enum:"user,assistant,tool,system" doc:"Only messages of this role."`
	After       time.Time  `query:"after" doc:"At this time or later."`
	Before      time.Time  `query:"before" doc:"Before this time."`
	AllBranches bool       `query:"all_branches" default:"false" doc:"Include messages that an edit or another answer replaced."`
	PageQuery
	Excerpt int // characters of an excerpt; 0 = DefaultExcerpt
	Around  int // neighbors to quote on each side of a result, at most MaxAround

	// Of SortRelevance only:

	Skip   int            // results of the first page to leave out
	Except map[int64]bool // messages of the session that are not results, by seq
}

// Check adds what is wrong with the query.
func (q *SearchQuery) Check(faults *Faults) {
	if q.Text == "" {
		faults.Add("q", "is missing: give the text to search for")
	}
}

// SearchTime bounds one search.
const SearchTime = 5 * time.Second

// errSearchTime is the cause of the end of a search that takes too long.
var errSearchTime = errors.New("the search took too long")

// WithinSearchTime calls search with a context that ends after SearchTime. If that is
// why it failed the error is an ErrUnavailable that says what to do.
func WithinSearchTime[T any](ctx context.Context, search func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, SearchTime, errSearchTime)
	defer cancel()
	found, err := search(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSearchTime) {
		err = &Error{Kind: ErrUnavailable, Code: CodeSearchTime, RetryAfter: SearchTime, Err: err,
			Message: fmt.Sprintf("the search took longer than %s and was stopped; look for rarer or fewer words, or in one session", SearchTime)}
	}
	return found, err
}

// maxAgentSearches is how many searches of agents run at once; further ones wait.
const maxAgentSearches = 4

// AgentSearch is the search of agents: for prompts, and of the tool. It bounds how many run at
// once, and each to SearchTime. Safe for concurrent use.
type AgentSearch struct {
	// Place waits for one of the places that the searches of a caller share; nil = there are enough.
	Place func(ctx context.Context, tenant Tenant) (release func(), err error)
	store SearchStore
	slots chan struct{} // one for each running search
}

// NewAgentSearch returns the search of agents in the store. One is shared by all agents.
func NewAgentSearch(store SearchStore) *AgentSearch {
	return &AgentSearch{store: store, slots: make(chan struct{}, maxAgentSearches)}
}

// Messages waits for a slot, and searches.
func (s *AgentSearch) Messages(ctx context.Context, tenant Tenant, q SearchQuery) (SearchPage, error) {
	if s.Place != nil {
		release, err := s.Place(ctx, tenant)
		if err != nil {
			return SearchPage{}, err
		}
		defer release()
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return SearchPage{}, ctx.Err()
	}
	return WithinSearchTime(ctx, func(ctx context.Context) (SearchPage, error) {
		return s.store.Messages(ctx, tenant, q)
	})
}

// DefaultExcerpt is the size of an excerpt, in characters.
const DefaultExcerpt = 200

// MaxAround is how many messages before and after a result are quoted at most.
const MaxAround = 5

// Neighbor is a message before or after a result, on the current path.
type Neighbor struct {
	MessageID MessageID `json:"message_id"`
	Seq       int64     `json:"seq"`
	Role      Role      `json:"role"`
	Author    string    `json:"author,omitempty"`
	Excerpt   string    `json:"excerpt"` // its beginning
	CreatedAt time.Time `json:"created_at"`
}

// SearchHit is a message that was found.
type SearchHit struct {
	SessionID    SessionID  `json:"session_id"`
	SessionTitle string     `json:"session_title"`
	MessageID    MessageID  `json:"message_id"`
	Seq          int64      `json:"seq"`
	Role         Role       `json:"role"`
	Author       string     `json:"author,omitempty" doc:"The name of who wrote it."`
	Score        float64    `json:"score,omitempty" doc:"How well the message fits, to be compared within one search only. Absent with 'sort=newest'."`
	Excerpt      string     `json:"excerpt"` // white space is one blank each, … what is left out
	Pieces       []Piece    `json:"pieces" doc:"The excerpt in consecutive pieces; those with match are the words found."`
	CreatedAt    time.Time  `json:"created_at"`
	Before       []Neighbor `json:"before,omitempty" schema:"-"` // in order; only with SearchQuery.Around
	After        []Neighbor `json:"after,omitempty" schema:"-"`
}

// Piece is a part of an excerpt.
type Piece struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"` // it is what was looked for
}

// SearchPage is a page of hits.
type SearchPage struct {
	Page[SearchHit]
	Indexing bool    `json:"indexing" doc:"Messages are still being indexed: some may be missing."`
	Meaning  Meaning `json:"meaning,omitempty" enum:"used,unavailable" doc:"used: results are also found by what they mean, as far as the messages are embedded; unavailable: the embedding model does not answer, so words alone are searched. Absent: meaning has no part in this search."`
	Total    *int    `json:"total,omitempty" doc:"How many results there are on all pages, or somewhat more. Absent with 'sort=newest'."`
}

// Meaning is the part of an embedding model in a search.
type Meaning string

// The parts of an embedding model.
const (
	MeaningUsed        Meaning = "used"        // messages with other words are results as well, as far as they are embedded
	MeaningUnavailable Meaning = "unavailable" // the embedding model does not answer: words alone are searched
)
