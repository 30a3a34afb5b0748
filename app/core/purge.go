package core

import "time"

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
