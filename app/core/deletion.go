package core

import (
	"fmt"
	"time"
)

// DeletionKind says what a deletion removes.
type DeletionKind string

// What can be deleted for good.
const (
	DeleteSession  DeletionKind = "session"  // with everything that belongs to it
	DeleteSessions DeletionKind = "sessions" // those of the plan, for an operator
	DeleteUser     DeletionKind = "user"     // everything of a user: sessions, memories, files, what they wrote elsewhere
)

// DeletionStatus says how far a deletion is.
type DeletionStatus string

// The states of deletions. A deletion never fails: it is tried until it succeeds.
const (
	DeletionPending   DeletionStatus = "pending"   // accepted, or waiting for its next attempt
	DeletionRunning   DeletionStatus = "running"   // a process is at work on it
	DeletionSucceeded DeletionStatus = "succeeded" // everything is removed; Report says what
)

// Deletion is the removal of a session or a user for good, as a job that survives
// restarts.
type Deletion struct {
	ID         DeletionID     `json:"id" gorm:"primaryKey"`
	Owner      string         `json:"-"`
	Kind       DeletionKind   `json:"kind" enum:"session,user"`
	SessionID  SessionID      `json:"session_id,omitempty" doc:"Of a session's deletion." gorm:"-"`
	UserHash   string         `json:"-"`                       // whose data it is: SecretHash of the user
	User       string         `json:"-" gorm:"column:user_id"` // of a user's deletion that is not done
	Actor      string         `json:"-"`                       // who asked for it, as the audit log names them
	SlackPosts bool           `json:"slack_posts,omitempty" doc:"The posts in Slack are deleted as well."`
	Status     DeletionStatus `json:"status" enum:"pending,running,succeeded" doc:"A deletion does not fail: it is retried until it succeeds." gorm:"-"`
	RowsTotal  int64          `json:"rows_total" doc:"Rows at the beginning; 0 before they are counted."`
	RowsLeft   int64          `json:"rows_left" doc:"Remaining rows of the sessions, counted every few seconds."`
	Attempts   int            `json:"attempts"`
	Error      string         `json:"error,omitempty" doc:"Why the last attempt failed. Another one follows."`
	Report     *PurgeReport   `json:"report,omitempty" doc:"Of a deletion that succeeded." gorm:"serializer:json"`
	CreatedAt  time.Time      `json:"created_at" gorm:"autoCreateTime:false"`
	FinishedAt *time.Time     `json:"finished_at,omitempty"` // nil until the deletion succeeded

	Plan  *DeletionPlan `json:"-" gorm:"serializer:json"`    // nil when it is done, and before its first attempt unless it names Sessions
	Lease string        `json:"-" gorm:"column:lease_owner"` // of the process at work
}

// DeletionPlan is what there was when a deletion began, with the sessions that came meanwhile. An
// attempt that follows another knows by it what was removed before.
type DeletionPlan struct {
	Sessions []SessionID   `json:"sessions"`
	Tables   []PurgedTable `json:"tables"` // nil until the first attempt has counted them
	// SlackPosts says what became of the posts of Sessions in Slack; nil until they are deleted.
	SlackPosts *PurgedPosts `json:"slack_posts,omitempty"`
}

// Target returns what tells deletions of one kind apart.
func (d Deletion) Target() string {
	switch d.Kind {
	case DeleteSession:
		return string(d.SessionID)
	case DeleteSessions:
		return SecretHash(fmt.Sprint(d.Plan.Sessions))
	}
	return d.UserHash
}
