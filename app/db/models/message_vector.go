package models

import (
	"time"
)

// MessageVector is a row of message_vectors.
type MessageVector struct {
	MessageID string `gorm:"primaryKey"`
	SessionID string
	Owner     string
	Model     string // empty = to be made anew
	Dimension int    // 0 = the model refused the text
	Embedding []byte // float32, little endian
}

// TableName is the table's name.
func (MessageVector) TableName() string { return "message_vectors" }

// MessageVectorWork is the row of message_vector_work.
type MessageVectorWork struct {
	ID          int64 `gorm:"primaryKey;autoIncrement:false"`
	Model       string
	Dimension   int
	ThroughAt   *time.Time // sessions without a change since then have their vectors; nil = look at all
	Worker      string
	LeasedUntil *time.Time
}

// TableName is the table's name.
func (MessageVectorWork) TableName() string { return "message_vector_work" }

// MessageVectorSession is a row of message_vector_sessions.
type MessageVectorSession struct {
	SessionID  string `gorm:"primaryKey"`
	Owner      string
	Model      string
	ThroughSeq int64 // messages up to this one have their vectors
}

// TableName is the table's name.
func (MessageVectorSession) TableName() string { return "message_vector_sessions" }
