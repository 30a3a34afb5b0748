package models

import (
	"time"

	"bobbin/app/core"
)

// Deletion is a row of deletions. Its User is empty when it is finished.
type Deletion struct {
	core.Deletion
	Target string    // core.Deletion.Target
	DueAt  time.Time // the next attempt, or the end of the lease; by the database's clock; zero = it is new
}

// Core returns the deletion of the row.
func (r Deletion) Core() core.Deletion {
	d := r.Deletion
	if d.Kind == core.DeleteSession {
		d.SessionID = core.SessionID(r.Target)
	}
	switch d.Status = core.DeletionPending; {
	case r.FinishedAt != nil:
		d.Status = core.DeletionSucceeded
	case r.Lease != "":
		d.Status = core.DeletionRunning
	}
	return d
}
