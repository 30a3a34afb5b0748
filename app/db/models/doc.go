// Package models holds the rows of Bobbin's tables, a file for each noun, and turns
// them into values of package core and back.
//
// A row and its value say the same; only what the database needs is different: an
// absent id is NULL, lists and free-form objects are JSON, times read back are UTC.
// Rows are plain data: nothing here reads or writes a database.
package models

import "time"

// utc returns the time as core has it: PostgreSQL's driver answers in local time.
func utc(t time.Time) time.Time { return t.UTC() }

// utcPtr is utc for a time that may be missing.
func utcPtr(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}
