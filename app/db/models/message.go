package models

import (
	"time"

	"bobbin/app/core"
)

// MessageRevision is a row of message_revisions.
type MessageRevision struct {
	core.Revision
	MessageID string `gorm:"primaryKey"`
	Number    int64  `gorm:"primaryKey;autoIncrement:false"` // 1, 2, 3 …
	SessionID string
	Owner     string
}

// MessageVector is a row of message_vectors.
type MessageVector struct {
	MessageID string `gorm:"primaryKey"`
	SessionID string
	Owner     string
	Model     string
	Dimension int       // 0 = the model refused the text
	Embedding []float32 `gorm:"serializer:vector"` // empty = the model refused the text
}

// MessageVectorWork is the row of message_vector_work.
type MessageVectorWork struct {
	ID          int64 `gorm:"primaryKey;autoIncrement:false"`
	Model       string
	Dimension   int
	Worker      string
	LeasedUntil *time.Time
}

// TableName is the table's name.
func (MessageVectorWork) TableName() string { return "message_vector_work" }
