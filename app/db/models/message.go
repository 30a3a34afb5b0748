package models

// MessageVector is a row of message_vectors.
type MessageVector struct {
	MessageID string `gorm:"primaryKey"`
	SessionID string
	Owner     string
	Model     string
	Dimension int       // 0 = the model refused the text
	Embedding []float32 `gorm:"serializer:vector"` // empty = the model refused the text
}
