package core

// Branch says which of the messages after the same parent a message is.
type Branch struct {
	Index    int       `json:"index"` // 1, 2, 3 … in the order in which they were written
	Count    int       `json:"count"`
	Previous MessageID `json:"previous,omitempty"`
	Next     MessageID `json:"next,omitempty"`
}

// PathChange says how the current path of a session changed: up to AfterID it is
// as before, from there on it is another branch.
type PathChange struct {
	AfterID  MessageID `json:"after_id,omitempty"` // the last message that both have; empty = they have none
	AfterSeq int64     `json:"after_seq"`          // its seq; 0 = they have none
	LeafID   MessageID `json:"leaf_id,omitempty"`  // the last one of the new path; empty = it is still to be written
}

// SessionData is the data of session.updated.
type SessionData struct {
	Session Session     `json:"session"`
	Path    *PathChange `json:"path,omitempty"` // nil = the current path is as before
	Slack   SlackChange `json:"slack,omitzero"` // zero = the thread of Slack is as before
}

// Regenerate asks for a new answer to a message that the log has already.
type Regenerate struct {
	SessionID       SessionID
	MessageID       MessageID // the answer that is not wanted, or its question
	User            string
	ClientMessageID string
	RequestHash     string // as Run.RequestHash
	Model           string // empty = the session's
	Multitask       Multitask
	Source          Source
	Options         *RunOptions // what the run does otherwise than its agent; nil = nothing
}

// ForkSession asks for a copy of a session.
type ForkSession struct {
	SessionID SessionID `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	MessageID MessageID `json:"message_id" doc:"The last message to copy; by default the whole current path." example:"01a1fd1c-7a10-7000-8000-000000000001"`
	ID        SessionID `json:"-"` // of the copy; empty = a new one
	Title     string    `json:"-"` // of the copy
}
