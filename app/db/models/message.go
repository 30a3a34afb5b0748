package models

import "bobbin/app/core"

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
