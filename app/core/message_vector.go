package core

import (
	"time"
)

// MessageVector is the vector of a message's text.
type MessageVector struct {
	MessageID MessageID
	SessionID SessionID
	Vector    []float32 `gorm:"column:embedding;serializer:vector"` // of length 1; nil = the model refused the text
}

// MessageVectorQuery says which vectors of a session are wanted.
type MessageVectorQuery struct {
	Space       VectorSpace
	AllBranches bool
	Before      MessageID
	SaidBefore  time.Time // only of messages before this time; zero = no bound
	Limit       int
}

// Unembedded are messages that need a vector.
type Unembedded struct {
	SessionID  SessionID
	Owner      string
	Messages   []Message
	AfterSeq   int64 // the session is embedded up to there
	ThroughSeq int64 // and with them up to there
}
