package core

import "time"

// ToolSearchHistory is the name of the tool by which an agent searches its session. What it
// found is not searched again: quotations of the log would find themselves.
const ToolSearchHistory = "search_history"

// SearchQuery asks for messages with certain words, newest first.
type SearchQuery struct {
	PageQuery
	Text        string    // in the language of core/searchtext
	SessionID   SessionID // empty = all sessions in the scope, archived ones too
	UserID      string    // of the session; empty = any within the scope
	Role        Role      // empty = any
	After       time.Time // only messages of this time or later; zero = no bound
	Before      time.Time // only earlier messages; zero = no bound
	AllBranches bool      // also messages that are not on the current path
	Excerpt     int       // characters of an excerpt; 0 = DefaultExcerpt
}

// DefaultExcerpt is the size of an excerpt, in characters.
const DefaultExcerpt = 200

// SearchHit is a message that was found.
type SearchHit struct {
	SessionID    SessionID   `json:"session_id"`
	SessionTitle string      `json:"session_title"`
	MessageID    MessageID   `json:"message_id"`
	Seq          int64       `json:"seq"`
	Role         Role        `json:"role"`
	Excerpt      string      `json:"excerpt"`    // white space is one blank each, … what is left out
	Highlights   []Highlight `json:"highlights"` // in order, never nil
	CreatedAt    time.Time   `json:"created_at"`
}

// Highlight is where something that was looked for stands in an excerpt, in bytes
// of UTF-8.
type Highlight struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// SearchPage is a page of hits.
type SearchPage struct {
	Page[SearchHit]
	// Indexing is true while messages of an older version are still being made
	// searchable: some may be missing.
	Indexing bool `json:"indexing"`
}
