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
	UserID              string          `json:"user_id,omitempty"`
	Source              Source          `json:"source"`
	Timezone            string          `json:"timezone,omitempty"`     // IANA name; empty = UTC
	Instructions        string          `json:"instructions,omitempty"` // the user's own, added to the system prompt
	Metadata            json.RawMessage `json:"metadata,omitempty"`
	Pinned              bool            `json:"pinned"`               // for people; nothing depends on it
	Tags                []string        `json:"tags,omitempty"`       // likewise
	Webhook             *Webhook        `json:"webhook,omitempty"`    // where the ends of its runs are told; nil = nowhere
	Temporary           bool            `json:"temporary,omitempty"`  // in no list and no search, without a title and summaries, and removed at ExpiresAt
	ExpiresAt           *time.Time      `json:"expires_at,omitempty"` // of a temporary one: TemporaryLife after its last activity
	MessageCount        int             `json:"message_count"`
	SummarizedCount     int             `json:"summarized_count"`               // messages that the active summary covers
	SummaryCount        int             `json:"summary_count"`                  // summaries made so far
	ConversationSummary *string         `json:"conversation_summary,omitempty"` // not in lists and events unless asked for
	SummaryThroughID    *MessageID      `json:"summary_through_id,omitempty"`
	SummaryVersion      int             `json:"summary_version"` // of the active summary; 0 = none
	LastSummarizedAt    *time.Time      `json:"last_summarized_at,omitempty"`
	CreatedAt           time.Time       `json:"created_at"`
	UpdatedAt           time.Time       `json:"updated_at"` // last activity
	ArchivedAt          *time.Time      `json:"archived_at,omitempty"`

	// What its runs do when it is read.

	Status        SessionStatus `json:"status"`
	ActiveRunID   RunID         `json:"active_run_id,omitempty"` // the run at work or waiting, else the next one in the queue; empty = none
	OpenApprovals int           `json:"open_approvals"`          // questions of the active run that nobody has decided

	// What follows is Bobbin's own book-keeping.

	TitledAt          *time.Time      `json:"-"` // when the title was made or set; nil = never
	SummaryThroughSeq int64           `json:"-"` // seq of SummaryThroughID; 0 = none
	SummaryTokens     int             `json:"-"` // cl100k_base tokens of ConversationSummary
	SummaryCovered    int             `json:"-"` // TokensCovered of the active summary
	SummaryMadeFor    int             `json:"-"` // MadeFor of the active summary
	NativeSummary     *NativeSummary  `json:"-"` // Native of the active summary
	PromptState       json.RawMessage `json:"-"` // contextwindow.PromptState; nil = nothing was decided yet
	PromptRevision    int             `json:"-"` // compare-and-set: raised by every compaction
	LastSeq           int64           `json:"-"` // seq of the newest message
	LastEventSeq      int64           `json:"-"` // number of the newest durable event
	Speakers          string          `json:"-"` // AfterSpeaker; empty = no user of a message is known
	StoredBytes       int64           `json:"-"` // of its messages, those of other branches included
	StandingCount     int             `json:"-"` // stored standing instructions, those of other branches included
	Importing         bool            `json:"-"` // messages are being written that are not in the log yet; it takes no others
}

// TemporaryLife is how long a temporary session is kept after its last activity.
const TemporaryLife = 24 * time.Hour

// WithExpiry returns the session with the time at which it is removed, if it is temporary.
func (s Session) WithExpiry() Session {
	if s.ExpiresAt = nil; s.Temporary {
		at := s.UpdatedAt.Add(TemporaryLife)
		s.ExpiresAt = &at
	}
	return s
}

// SessionStatus says what a session does at the moment.
type SessionStatus string

// The states of a session.
const (
	SessionIdle    SessionStatus = "idle"    // no run is active or queued
	SessionQueued  SessionStatus = "queued"  // runs wait for a free slot
	SessionRunning SessionStatus = "running" // a run is at work
	SessionWaiting SessionStatus = "waiting" // a run waits for a person's decision
)

// Limits of the tags of a session.
const (
	MaxTags     = 20
	MaxTagBytes = 100
)

// MaxFilterBytes is how long a filter of sessions by metadata may be.
const MaxFilterBytes = 1000

// TimeRange is a part of time; a zero time is no bound.
type TimeRange struct {
	After  time.Time // from it on
	Before time.Time // up to it, not included
}

// SessionPatch changes a session; nil fields stay as they are.
type SessionPatch struct {
	Title        *string
	Agent        *string
	Model        *string
	Timezone     *string
	Instructions *string
	Metadata     json.RawMessage
	Pinned       *bool
	Tags         []string // nil = they stay
	Webhook      *Webhook // without an address: none any more
	Force        bool     // also a model into which the conversation cannot fit
	Keep         bool     // it is not temporary any more
	Archived     *bool    // true puts it away: it takes no new messages and is not listed
}

// NewTitle is a title that was made for a session.
type NewTitle struct {
	SessionID SessionID
	RunID     RunID // that the title was made for
	Title     string
	Of        []MessageID // the question that it was made of, and the answer if there is one
	Calls     []ModelCall // that it took, for the books
}

// SessionOrder is an order of lists of sessions.
type SessionOrder string

// The orders of lists of sessions.
const (
	OrderByActivity SessionOrder = "activity" // the newest activity first
	OrderByCreation SessionOrder = "created"  // the newest first; it does not change while pages are read
	// OrderByRelevance is for a text: those that it fits best first. Not all words need to occur.
	OrderByRelevance SessionOrder = "relevance"
)

// SessionQuery selects sessions.
type SessionQuery struct {
	PageQuery
	Order    SessionOrder // empty = OrderByActivity
	Agent    string       // empty = any
	UserID   string       // empty = any within the scope
	Text     string       // what is looked for in titles and messages (core/searchtext); empty = all
	Archived bool         // also the archived ones

	Status     SessionStatus   // empty = any
	Pinned     *bool           // nil = both
	Tag        string          // one of the session's tags; empty = any
	Metadata   json.RawMessage // an object of texts, numbers and booleans that the session's has as well; nil = any
	TitlesOnly bool            // Text is looked for in titles alone
	Created    TimeRange
	Updated    TimeRange
	Summaries  bool // with the texts of their summaries
}

// MessageQuery selects messages of a session in the order of their seq, or in the opposite one.
type MessageQuery struct {
	PageQuery
	Before      int64 // only messages with a smaller seq: the newest of them, still in ascending order; 0 = no bound
	After       int64 // only messages with a greater seq
	AllBranches bool  // also those that are not on the current path
	Descending  bool  // the newest first
	Revisions   bool  // the messages with their revisions
}
