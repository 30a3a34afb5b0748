package models

import (
	"time"
)

// SearchEntry is a row of search_entries: a searchable text. Each database stores its words
// in its own way.
type SearchEntry struct {
	N int64 `gorm:"primaryKey"`
	SearchText
}

// SearchText is what a searchable text has besides its words.
type SearchText struct {
	Owner     string
	SessionID string
	MessageID Ref       // empty = the title of the session
	CreatedAt time.Time `gorm:"autoCreateTime:false"` // to the millisecond
	Seq       int64     // of the message; 0 = the title
	OnPath    bool
	Length    int    // words, without stop words
	Terms     []byte // searchtext.Terms
}

// The readers of messages.
const (
	ReaderSearch  = "search"  // writes the search index
	ReaderVectors = "vectors" // embeds them
	// ReaderStanding searches the users' messages for standing instructions, when these are asked for. It
	// has a row from then on.
	ReaderStanding = "standing"
)

// SessionReader is a row of session_readers: how far a reader has read the messages of a session. Its
// lock excludes the reader, and holds up no turn.
type SessionReader struct {
	SessionID string `gorm:"primaryKey"`
	Reader    string `gorm:"primaryKey"`
	Owner     string
	Seq       int64 // below 1 = nothing; -1 of the search index = the title neither
	Behind    bool  // there are messages beyond it; of ReaderVectors
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
