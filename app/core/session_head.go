package core

import "time"

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
