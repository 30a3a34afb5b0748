package models

import "time"

// WriteCheck is the row of write_checks, which is written to check that the database
// accepts writes.
type WriteCheck struct {
	ID        int `gorm:"primaryKey"`
	CheckedAt *time.Time
}
