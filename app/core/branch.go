package core

// Branch says which of the messages after the same parent a message is.
type Branch struct {
	Index    int       `json:"index" min:"1"` // 1, 2, 3 … in the order in which they were written
	Count    int       `json:"count" min:"2"`
	Previous MessageID `json:"previous,omitempty"`
	Next     MessageID `json:"next,omitempty"`
}

// PathChange says how the current path of a session changed: up to AfterID it is
// as before, from there on it is another branch.
type PathChange struct {
	AfterID  MessageID `json:"after_id,omitempty"` // the last message that both have; empty = they have none
	AfterSeq int64     `json:"after_seq" doc:"GET …/messages?after= this seq returns the new part of the path; 0 = the whole path is new."`
	LeafID   MessageID `json:"leaf_id,omitempty"` // the last one of the new path; empty = it is still to be written
}

// SessionData is the data of session.updated.
type SessionData struct {
	Session Session     `json:"session"`
	Path    *PathChange `json:"path,omitempty" doc:"The current path changed after this message."`
	Slack   SlackChange `json:"slack,omitzero" doc:"The session was attached to this thread of Slack, or its mode changed; an empty object = it was detached. For owners."`
}

// Regenerate asks for a new answer to a message that the log has already.
type Regenerate struct {
	SessionID       SessionID   `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	MessageID       MessageID   `path:"mid,message" doc:"The message." example:"01a1fd1c-7a10-7000-8000-000000000001"` // the answer that is not wanted, or its question
	ClientMessageID string      `json:"client_message_id" schema:"Name"`
	RequestHash     string      `json:"-"`     // as Run.RequestHash
	Model           string      `json:"model"` // empty = the session's
	Multitask       Multitask   `json:"multitask" enum:"reject,interrupt" default:"reject"`
	User            string      `json:"user_id" schema:"Name"`
	Source          Source      `json:"source" enum:"api,web,cli"`
	Options         *RunOptions `json:"options"` // what the run does otherwise than its agent; nil = nothing
}

// ForkSession asks for a copy of a session.
type ForkSession struct {
	SessionID SessionID `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	MessageID MessageID `json:"message_id" doc:"The last message to copy; by default the whole current path." example:"01a1fd1c-7a10-7000-8000-000000000001"`
	ID        SessionID `json:"-"` // of the copy; empty = a new one
	Title     string    `json:"-"` // of the copy
}
