// Package models has the rows of Bobbin's tables, a file for each noun, and converts
// them to values of package core and back.
//
// A row differs from its value only where the database requires it: an absent id is
// NULL, lists and free-form objects are JSON, times are read as UTC. Rows are plain
// data: nothing here reads or writes a database. A table has the plural of its type's name,
// unless TableName says otherwise.
package models

import "time"

// toUTC returns the time in UTC: PostgreSQL's driver returns local times.
func toUTC(t time.Time) time.Time { return t.UTC() }

// toUTCPtr is toUTC for an optional time.
func toUTCPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
