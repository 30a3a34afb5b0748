package models

import "time"

// MessageVector is a row of message_vectors.
type MessageVector struct {
	MessageID string `gorm:"primaryKey"`
	SessionID string
	Owner     string
	Model     string
	Dimension int    // 0 = the model refused the text
	Embedding []byte // float32, little endian
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
