package models

import (
	"fmt"
	"time"

	"bobbin/app/core"
)

// Deletion is a row of deletions.
type Deletion struct {
	ID         string `gorm:"primaryKey"`
	Owner      string
	Kind       string
	Target     string // core.Deletion.Target
	UserHash   string
	UserID     string // empty when finished
	Actor      string
	SlackPosts bool
	Plan       JSON
	RowsTotal  int64
	RowsLeft   int64
	Attempts   int
	Report     JSON
	Error      string
	LeaseOwner string
	DueAt      time.Time // the next attempt, or the end of the lease; by the database's clock
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	FinishedAt *time.Time
}

// DeletionFrom returns the row of a new deletion.
func DeletionFrom(d core.Deletion) Deletion {
	return Deletion{
		ID: string(d.ID), Owner: d.Owner, Kind: string(d.Kind), Target: d.Target(), UserHash: d.UserHash, UserID: d.User,
		Actor: d.Actor, SlackPosts: d.SlackPosts, CreatedAt: d.CreatedAt,
	}
}

// Core returns the deletion of the row.
func (r Deletion) Core() (core.Deletion, error) {
	d := core.Deletion{
		ID: core.DeletionID(r.ID), Owner: r.Owner, Kind: core.DeletionKind(r.Kind), UserHash: r.UserHash, User: r.UserID, Actor: r.Actor, SlackPosts: r.SlackPosts,
		Status: core.DeletionPending, RowsTotal: r.RowsTotal, RowsLeft: r.RowsLeft, Attempts: r.Attempts, Error: r.Error,
		CreatedAt: toUTC(r.CreatedAt), FinishedAt: toUTCPtr(r.FinishedAt), Lease: r.LeaseOwner,
	}
	if d.Kind == core.DeleteSession {
		d.SessionID = core.SessionID(r.Target)
	}
	switch {
	case r.FinishedAt != nil:
		d.Status = core.DeletionSucceeded
	case r.LeaseOwner != "":
		d.Status = core.DeletionRunning
	}
	if err := r.Plan.decodeInto(&d.Plan); err != nil {
		return d, fmt.Errorf("plan of deletion %s: %w", r.ID, err)
	}
	if err := r.Report.decodeInto(&d.Report); err != nil {
		return d, fmt.Errorf("report of deletion %s: %w", r.ID, err)
	}
	return d, nil
}
