package models

import (
	"time"
)

// SearchEntry is a row of search_entries: a text that can be searched. Its words
// are kept as each database looks for them best.
type SearchEntry struct {
	N         int64 `gorm:"primaryKey"`
	Owner     string
	SessionID string
	MessageID Ref       // empty = the title of the session
	CreatedAt time.Time `gorm:"autoCreateTime:false"` // to the millisecond
}

// TableName is the table's name.
func (SearchEntry) TableName() string { return "search_entries" }

// SearchFill is a row of search_fill: a part of the index that is still missing.
type SearchFill struct {
	Part    string `gorm:"primaryKey"`
	Through string // the id of the last one done
}

// TableName is the table's name.
func (SearchFill) TableName() string { return "search_fill" }
