package core

import (
	"encoding/json"
	"time"
)

// Session is a conversation that goes on for ever.
type Session struct {
	ID                  SessionID       `json:"id"`
	Owner               string          `json:"-"`
	Agent               string          `json:"agent"`
	Model               string          `json:"model,omitempty"` // overrides the agent's model; empty = the agent's
	Title               string          `json:"title"`
	UserID              string          `json:"user_id"`
	Source              Source          `json:"source"`
	Timezone            string          `json:"timezone"`     // IANA name; empty = UTC
	Instructions        string          `json:"instructions"` // the user's own, added to the system prompt
	Metadata            json.RawMessage `json:"metadata,omitempty"`
	Webhook             *Webhook        `json:"webhook,omitempty"` // where the ends of its runs are told; nil = nowhere
	MessageCount        int             `json:"message_count"`
	SummarizedCount     int             `json:"summarized_count"` // messages that the active summary covers
	SummaryCount        int             `json:"summary_count"`    // summaries made so far
	ConversationSummary *string         `json:"conversation_summary"`
	SummaryThroughID    *MessageID      `json:"summary_through_id"`
	SummaryVersion      int             `json:"summary_version"` // of the active summary; 0 = none
	LastSummarizedAt    *time.Time      `json:"last_summarized_at"`
	CreatedAt           time.Time       `json:"created_at"`
	UpdatedAt           time.Time       `json:"updated_at"` // last activity
	ArchivedAt          *time.Time      `json:"archived_at"`

	// What follows is Bobbin's own book-keeping.

	TitledAt          *time.Time      `json:"-"` // when the title was made or set; nil = never
	SummaryThroughSeq int64           `json:"-"` // seq of SummaryThroughID; 0 = none
	SummaryTokens     int             `json:"-"` // cl100k_base tokens of ConversationSummary
	PromptState       json.RawMessage `json:"-"` // contextwindow.PromptState; nil = nothing was decided yet
	PromptRevision    int             `json:"-"` // compare-and-set: raised by every compaction
	LastSeq           int64           `json:"-"` // seq of the newest message
	LastEventSeq      int64           `json:"-"` // number of the newest durable event
}

// SessionPatch changes a session; nil fields stay as they are.
type SessionPatch struct {
	Title        *string
	Agent        *string
	Model        *string
	Timezone     *string
	Instructions *string
	Metadata     json.RawMessage
	Webhook      *Webhook // without an address: none any more
}

// NewTitle is a title that was made for a session.
type NewTitle struct {
	SessionID SessionID
	Title     string
	Of        []MessageID // the question that it was made of, and the answer if there is one
	Calls     []ModelCall // that it took, for the books
}

// SessionQuery selects sessions, newest activity first.
type SessionQuery struct {
	PageQuery
	Agent    string // empty = any
	UserID   string // empty = any within the scope
	Text     string // what is looked for in titles and messages (core/searchtext); empty = all
	Archived bool   // also the archived ones
}

// MessageQuery selects messages of a session in the order of their seq.
type MessageQuery struct {
	PageQuery
	Before      int64 // only messages with a smaller seq: the newest of them, still in ascending order; 0 = no bound
	After       int64 // only messages with a greater seq
	AllBranches bool  // also those that are not on the current path
}
