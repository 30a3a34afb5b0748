package core

import (
	"context"
	"time"
)

// MessageVector is the vector of a message's text.
type MessageVector struct {
	MessageID MessageID
	SessionID SessionID
	Vector    []float32 `gorm:"column:embedding;serializer:vector"` // of length 1; nil = the model refused the text
}

// MessageVectorStore stores the vectors of messages. It MUST not return vectors of messages that
// were deleted or edited since they were made.
type MessageVectorStore interface {
	// Claim makes the worker the one that embeds messages for a while, and begins anew for
	// another space; false = another worker is at it, or has just begun.
	Claim(ctx context.Context, worker string, space VectorSpace) (bool, error)
	// Unembedded returns the next messages of a session without a vector in the space, in the
	// order of the log, unless one of the owners has it. An empty SessionID = there are none.
	Unembedded(ctx context.Context, space VectorSpace, except []string, limit int) (Unembedded, error)
	// StoreVectors stores the vectors of the messages, how far the session is embedded, and the
	// call that made them; the call alone if a message was edited since Unembedded.
	StoreVectors(ctx context.Context, of Unembedded, space VectorSpace, vectors []MessageVector, call ModelCall) error
	// SessionVectors returns vectors of a session's messages, the newest first, before the
	// given message; empty = from the newest on.
	SessionVectors(ctx context.Context, tenant Tenant, session SessionID, q MessageVectorQuery) ([]MessageVector, error)
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
