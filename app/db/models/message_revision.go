package models

import (
	"time"

	"bobbin/app/core"
)

// MessageRevision is a row of message_revisions.
type MessageRevision struct {
	MessageID  string `gorm:"primaryKey"`
	Number     int64  `gorm:"primaryKey;autoIncrement:false"` // 1, 2, 3 …
	SessionID  string
	Owner      string
	Content    string
	TokenCount int
	ReplacedAt time.Time
}

// Core returns the revision of the row.
func (r MessageRevision) Core() core.Revision {
	return core.Revision{Content: r.Content, TokenCount: r.TokenCount, ReplacedAt: toUTC(r.ReplacedAt)}
}
