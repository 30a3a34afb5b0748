package core

import (
	"encoding/json"
	"time"
)

// Session is a conversation that goes on for ever.
type Session struct {
	ID                  SessionID       `json:"id" gorm:"primaryKey"`
	Owner               string          `json:"-"`
	Agent               string          `json:"agent"`
	Model               string          `json:"model,omitempty" doc:"Only if it overrides the agent's."`
	Title               string          `json:"title"`
	UserID              string          `json:"user_id,omitempty"`
	Source              Source          `json:"source"`
	Timezone            string          `json:"timezone,omitempty"`     // IANA name; empty = UTC
	Instructions        string          `json:"instructions,omitempty"` // the user's own, added to the system prompt
	Metadata            json.RawMessage `json:"metadata,omitempty" schema:"Metadata" gorm:"serializer:json"`
	Pinned              bool            `json:"pinned" doc:"For lists; has no other effect."`
	Tags                []string        `json:"tags,omitempty" schema:"Tags" gorm:"serializer:json"` // likewise
	Webhook             *Webhook        `json:"webhook,omitempty" gorm:"-"`                          // where the ends of its runs are told; nil = nowhere
	Temporary           bool            `json:"temporary,omitempty" doc:"It is in no list and no search, and is removed at 'expires_at'."`
	ExpiresAt           *time.Time      `json:"expires_at,omitempty" doc:"Of a temporary session: a day after its last activity." gorm:"-"`
	Slack               bool            `json:"slack,omitempty" doc:"It is attached to a thread of Slack. For owners."`
	MessageCount        int             `json:"message_count"`
	SummarizedCount     int             `json:"summarized_count" doc:"Messages that the active summary covers."`
	SummaryCount        int             `json:"summary_count" doc:"Number of summaries created."`
	ConversationSummary *string         `json:"conversation_summary,omitempty" doc:"The text of the active summary. In lists only with 'include=summary', in events never."`
	SummaryThroughID    *MessageID      `json:"summary_through_id,omitempty" doc:"The last message that the active summary covers."`
	SummaryVersion      int             `json:"summary_version" doc:"Of the active summary; 0 = none."`
	LastSummarizedAt    *time.Time      `json:"last_summarized_at,omitempty"`
	CreatedAt           time.Time       `json:"created_at" gorm:"autoCreateTime:false"`
	UpdatedAt           time.Time       `json:"updated_at" doc:"Last activity." gorm:"autoUpdateTime:false"`
	ArchivedAt          *time.Time      `json:"archived_at,omitempty"`

	// What its runs do when it is read.

	Status        SessionStatus `json:"status" gorm:"-"`
	ActiveRunID   RunID         `json:"active_run_id,omitempty" doc:"The running or waiting run, else the next one in the queue; absent while the session is idle." gorm:"-"`
	OpenApprovals int           `json:"open_approvals" doc:"Open approvals of the active run; getRun lists them." gorm:"-"`

	// What follows is Bobbin's own book-keeping.

	TitledAt          *time.Time      `json:"-"`                                      // when the title was made or set; nil = never
	SummaryThroughSeq int64           `json:"-"`                                      // seq of SummaryThroughID; 0 = none
	SummaryTokens     int             `json:"-"`                                      // cl100k_base tokens of ConversationSummary
	SummaryCovered    int             `json:"-" gorm:"column:summary_tokens_covered"` // TokensCovered of the active summary
	SummaryMadeFor    int             `json:"-"`                                      // MadeFor of the active summary
	NativeSummary     *NativeSummary  `json:"-" gorm:"serializer:native"`             // Native of the active summary
	PromptState       json.RawMessage `json:"-" gorm:"serializer:json"`               // contextwindow.PromptState; nil = nothing was decided yet
	PromptRevision    int             `json:"-"`                                      // compare-and-set: raised by every compaction
	LastSeq           int64           `json:"-"`                                      // seq of the newest message
	LastEventSeq      int64           `json:"-"`                                      // number of the newest durable event
	Speakers          string          `json:"-"`                                      // AfterSpeaker; empty = no user of a message is known
	StoredBytes       int64           `json:"-"`                                      // of its messages, summaries, standing instructions and prompt setups, those of other branches included
	StandingCount     int             `json:"-"`                                      // stored standing instructions, those of other branches included
	Importing         bool            `json:"-" gorm:"-"`                             // messages are being written that are not in the log yet; it takes no others
}

// NewBytes returns what storing the session without its messages counts.
func (s Session) NewBytes() int64 { return int64(2*StoredRow + len(s.Instructions) + len(s.Metadata)) }

// TemporaryLife is how long a temporary session is kept after its last activity.
const TemporaryLife = 24 * time.Hour

// WithExpiry returns the session with the time at which it is removed, if it is temporary.
func (s Session) WithExpiry() Session {
	if s.ExpiresAt = nil; s.Temporary {
		s.ExpiresAt = new(s.UpdatedAt.Add(TemporaryLife))
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

// SessionPatch changes a session; nil fields stay as they are.
type SessionPatch struct {
	Title        *string         `json:"title" max:"500"`
	Agent        *string         `json:"agent"`
	Model        *string         `json:"model"`
	Timezone     *string         `json:"timezone"`
	Instructions *string         `json:"instructions" max:"16384"`
	Metadata     json.RawMessage `json:"metadata" schema:"Metadata"`
	Pinned       *bool           `json:"pinned"`
	Tags         []string        `json:"tags" schema:"Tags" doc:"Replaces all tags; an empty list removes them."`
	Webhook      *Webhook        `json:"-"` // without an address: none any more
	Force        bool            `json:"force" default:"false" doc:"Change the model even if the conversation cannot fit its window, instead of 422 'context_floor'."`
	Keep         bool            `json:"keep" default:"false" doc:"A temporary session becomes an ordinary one."`
	Archived     *bool           `json:"archived" doc:"'false' brings an archived session back; 'true' archives it, as DELETE does."`
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
	Text          string          `query:"q" max:"10240" example:"pump" doc:"A question or words, as in search. With order activity or created: sessions with all words in the title or in one message, at most 500 bytes."`
	TitlesOnly    bool            `query:"in" word:"title" doc:"'title': search only in titles."`
	Agent         string          `query:"agent" doc:"Only sessions with this agent."`
	UserID        string          `query:"user_id" doc:"Only sessions of this user."`
	Status        SessionStatus   `query:"status" enum:"idle,queued,running,waiting" doc:"Only sessions with this status."`
	Pinned        *bool           `query:"pinned" doc:"Only pinned, or only unpinned sessions."`
	Tag           string          `query:"tag" max:"100" doc:"Only sessions with this tag."`
	Metadata      json.RawMessage `query:"metadata" format:"json" max:"1000" example:"{\"project\": \"pumps\"}" doc:"Only sessions whose metadata have these members: a JSON object of 1 to 8 strings, numbers and booleans."`
	CreatedAfter  time.Time       `query:"created_after" doc:"Created at this time or later."`
	CreatedBefore time.Time       `query:"created_before" doc:"Created before this time."`
	UpdatedAfter  time.Time       `query:"updated_after" doc:"Last activity at this time or later."`
	UpdatedBefore time.Time       `query:"updated_before" doc:"Last activity before this time."`
	Slack         bool            `query:"slack" default:"false" doc:"Only sessions that are attached to a thread of Slack; for end users none."`
	Archived      bool            `query:"archived" default:"false" doc:"Include archived sessions."`
	Summaries     bool            `query:"include" word:"summary" doc:"'summary': include the text of the active summary."`
	Order         SessionOrder    `query:"order" enum:"activity,created,relevance" doc:"'activity': latest activity first; sessions used while you read move to the front, so that later pages may miss them. 'created': newest first; later pages miss no session that existed at the first page. 'relevance', the default with q: sessions whose title has all words, then the others in the order of their best message. A cursor keeps its order."`
	PageQuery
}

// Check returns the order to use and adds what is wrong with the query.
func (q *SessionQuery) Check(faults *Faults) {
	if q.TitlesOnly && q.Text == "" {
		faults.Add("in", "requires q")
	}
	switch {
	case q.Order == OrderByRelevance && (q.Text == "" || q.TitlesOnly):
		faults.Add("order", "relevance requires q, without in=title")
	case q.Order == "" && q.Text != "" && !q.TitlesOnly:
		q.Order = OrderByRelevance
	}
}

// MessageQuery selects messages of a session in the order of their seq, or in the opposite one.
type MessageQuery struct {
	Before      int64 `query:"before" min:"0" doc:"The newest messages before this seq; 0 = no limit."` // they are still in ascending order
	After       int64 `query:"after" min:"0" doc:"Messages after this seq."`
	Descending  bool  `query:"order" enum:"asc,desc" word:"desc" default:"asc" doc:"'desc': the newest message first, page after page into the past."`
	AllBranches bool  `query:"all_branches" default:"false" doc:"Include messages that are not on the current path."`
	Revisions   bool  // the messages with their revisions
	PageQuery
}

// SessionHead is what a list shows of a session.
type SessionHead struct {
	ID           SessionID     `json:"-"` // in the event
	Title        string        `json:"title"`
	Agent        string        `json:"agent"`
	UserID       string        `json:"user_id,omitempty"`
	Source       Source        `json:"source"`
	Status       SessionStatus `json:"status"`
	Pinned       bool          `json:"pinned"`
	Archived     bool          `json:"archived"`
	Temporary    bool          `json:"-"`
	MessageCount int           `json:"message_count"`
	LastEvent    int64         `json:"last_event"` // number of the session's newest event
	UpdatedAt    time.Time     `json:"updated_at"`
	Waiting      *WaitingFor   `json:"waiting,omitempty"` // nil = its run waits for nobody
}

// WaitingFor is the first open question of a run that waits.
type WaitingFor struct {
	RunID      RunID      `json:"run_id"`
	ApprovalID ApprovalID `json:"approval_id"`
	Tool       string     `json:"tool"`
}

// RemovedHead is the data of a session.head whose session is gone.
type RemovedHead struct {
	Deleted bool `json:"deleted"`
}

// Alias is the name by which a surface knows a session: a thread of Slack, or an id that a
// client chose. An owner's aliases are unique per surface.
type Alias struct {
	Surface Source
	Name    string
}

// SuccessorID returns the id of the session that continues this one when it is archived. It
// follows from the id alone, so that concurrent callers create one successor.
func (s Session) SuccessorID() SessionID {
	return SessionID(derivedID(string(s.ID), "successor "+string(s.ID)))
}

// Branch says which of the messages after the same parent a message is.
type Branch struct {
	Index    int       `json:"index" min:"1"` // 1, 2, 3 … in the order in which they were written
	Count    int       `json:"count" min:"2"`
	Previous MessageID `json:"previous,omitempty"`
	Next     MessageID `json:"next,omitempty"`
}

// PathChange says how the current path of a session changed: up to AfterID it is
// as before, from there on it is another branch.
type PathChange struct {
	AfterID  MessageID `json:"after_id,omitempty"` // the last message that both have; empty = they have none
	AfterSeq int64     `json:"after_seq" doc:"GET …/messages?after= this seq returns the new part of the path; 0 = the whole path is new."`
	LeafID   MessageID `json:"leaf_id,omitempty"` // the last one of the new path; empty = it is still to be written
}

// SessionData is the data of session.updated.
type SessionData struct {
	Session Session     `json:"session"`
	Path    *PathChange `json:"path,omitempty" doc:"The current path changed after this message."`
	Slack   SlackChange `json:"slack,omitzero" doc:"The session was attached to this thread of Slack, or its mode changed; an empty object = it was detached. For owners."`
}

// Regenerate asks for a new answer to a message that the log has already.
type Regenerate struct {
	SessionID       SessionID   `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	MessageID       MessageID   `path:"mid,message" doc:"The message." example:"01a1fd1c-7a10-7000-8000-000000000001"` // the answer that is not wanted, or its question
	ClientMessageID string      `json:"client_message_id" schema:"Name"`
	RequestHash     string      `json:"-"`     // as Run.RequestHash
	Model           string      `json:"model"` // empty = the session's
	Multitask       Multitask   `json:"multitask" enum:"reject,interrupt" default:"reject"`
	User            string      `json:"user_id" schema:"Name"`
	Source          Source      `json:"source" enum:"api,web,cli"`
	Options         *RunOptions `json:"options"` // what the run does otherwise than its agent; nil = nothing
}

// ForkSession asks for a copy of a session.
type ForkSession struct {
	SessionID SessionID `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	MessageID MessageID `json:"message_id" doc:"The last message to copy; by default the whole current path." example:"01a1fd1c-7a10-7000-8000-000000000001"`
	ID        SessionID `json:"-"` // of the copy; empty = a new one
	Title     string    `json:"-"` // of the copy
}
