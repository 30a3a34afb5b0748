package core

import (
	"fmt"
	"time"
)

// Purge says what an operator removes for good: sessions with everything that belongs to them, or everything of a user.
type Purge struct {
	IDs            []SessionID `json:"ids,omitempty"`
	ArchivedBefore *time.Time  `json:"archived_before,omitempty"` // besides the IDs: what was archived before this time
	Owner          string      `json:"owner,omitempty"`           // of the user, or of the sessions; empty = anybody's sessions
	User           string      `json:"user_id,omitempty"`         // without sessions
	PurgeOptions
}

// PurgeOptions say how a purge is done.
type PurgeOptions struct {
	DryRun  bool `json:"dry_run,omitempty" schema:"-"` // only count what would be removed
	Force   bool `json:"force,omitempty"`              // cancel runs that have not ended; without it they are a conflict
	Compact bool `json:"compact,omitempty"`            // also take the removed bytes out of the database's files
	// SlackPosts also deletes from Slack what Bobbin posted for the sessions.
	SlackPosts bool `json:"slack_posts,omitempty"`
}

// PurgeReport is what a purge came to. A proof follows it: Left of each table is
// counted anew after everything was removed.
type PurgeReport struct {
	Sessions []SessionID `json:"sessions" doc:"The removed sessions, at most the first 1,000."`
	DryRun   bool        `json:"dry_run,omitempty" schema:"-"` // nothing was done
	// Unfinished are runs that have not ended yet; of a dry run only.
	Unfinished []RunID       `json:"unfinished,omitempty" schema:"-"`
	Tables     []PurgedTable `json:"tables"`
	Compacted  bool          `json:"compacted" doc:"The removed bytes are erased from the database files, which only operators can request."`
	Notes      []string      `json:"notes"` // what an operator should know, such as where bytes stay
	SlackPosts *PurgedPosts  `json:"slack_posts,omitempty" doc:"What became of the posts in Slack, if they were to be deleted."`
}

// PurgedPosts counts the posts in Slack that a purge was to delete, by what became of them. A dry
// run only sets Found.
type PurgedPosts struct {
	Found   int64 `json:"found" doc:"The sum of the others."`
	Deleted int64 `json:"deleted"` // by Slack
	Gone    int64 `json:"gone" doc:"Not in Slack any more."`
	Refused int64 `json:"refused" doc:"Slack did not delete them."`
	Unknown int64 `json:"unknown" doc:"Slack does not say whether it has them."`
}

// Add adds the counts of another one.
func (p *PurgedPosts) Add(q PurgedPosts) {
	p.Found += q.Found
	p.Deleted += q.Deleted
	p.Gone += q.Gone
	p.Refused += q.Refused
	p.Unknown += q.Unknown
}

// PurgedTable is what a purge did to one table.
type PurgedTable struct {
	Table   string `json:"table"`
	Removed int64  `json:"removed" doc:"Rows."`
	Emptied int64  `json:"emptied" doc:"Rows that stay, without data of the user."`
	Left    int64  `json:"left" doc:"Rows with remaining data, counted afterwards."`
}

// Rows returns how many rows were removed or emptied, or are to be.
func (r PurgeReport) Rows() int64 {
	var n int64
	for _, t := range r.Tables {
		n += t.Removed + t.Emptied
	}
	return n
}

// Left returns how many rows have something left in them.
func (r PurgeReport) Left() int64 {
	var n int64
	for _, t := range r.Tables {
		n += t.Left
	}
	return n
}

// UnfinishedRun is a run that stands in the way of a purge.
type UnfinishedRun struct {
	ID        RunID
	SessionID SessionID
	Owner     string
	Leased    bool // somebody works on it, by the database's clock
}

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
