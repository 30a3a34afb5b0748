package core

import "time"

// SummaryKind says what a summary stands for.
type SummaryKind string

// The kinds of summaries.
const (
	SummaryRolling SummaryKind = "rolling" // the beginning of the session up to the cursor
	SummaryRun     SummaryKind = "run"     // the older part of one run's tool loop
)

// SummaryState says whether a summary is in use.
type SummaryState string

// The states of summaries.
const (
	SummaryPrepared SummaryState = "prepared" // changes no prompt yet
	SummaryActive   SummaryState = "active"
	SummaryDropped  SummaryState = "dropped"
	SummaryErased   SummaryState = "erased" // a message that it covered was deleted: its content is gone
)

// Summary is one version of a session's summary. Versions are append-only.
type Summary struct {
	ID              SummaryID     `json:"id"`
	SessionID       SessionID     `json:"session_id"`
	Owner           string        `json:"-"`
	Version         int           `json:"version"` // 1, 2, 3 … in the session
	Kind            SummaryKind   `json:"kind"`
	State           SummaryState  `json:"state"`
	Content         string        `json:"content"`
	FromID          MessageID     `json:"from_id"`    // first message covered
	ThroughID       MessageID     `json:"through_id"` // last message covered
	FromSeq         int64         `json:"from_seq"`
	ThroughSeq      int64         `json:"through_seq"`
	MessagesCovered int           `json:"messages_covered"` // from the beginning of the session
	MessagesAdded   int           `json:"messages_added"`   // by this version
	TokensBefore    int           `json:"tokens_before"`    // what it replaces: the summary before and the messages added
	TokensAfter     int           `json:"tokens_after"`
	TokenCount      int           `json:"token_count"` // of Content
	Model           string        `json:"model"`       // empty = made without a model
	Strategy        string        `json:"strategy"`
	Trigger         string        `json:"trigger"`
	Focus           string        `json:"focus,omitempty"` // what the user asked to keep
	Note            string        `json:"note,omitempty"`  // why it is not what was asked for, such as "fallback: …"
	Duration        time.Duration `json:"duration_ns"`
	CreatedAt       time.Time     `json:"created_at"`
}

// ContextChange is what a compaction wants to store, all in one compare-and-set:
// it is refused with ErrStale when the session's PromptRevision is not Expect.
type ContextChange struct {
	SessionID   SessionID
	Expect      int      // PromptRevision the plan was made from
	PromptState []byte   // the new contextwindow.PromptState as JSON
	Summary     *Summary // the new active version; nil = only the prompt state changes
	Events      []Event  // context.*, written with it
	ModelCalls  []ModelCall
}
