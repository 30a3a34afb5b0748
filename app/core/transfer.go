package core

import (
	"io"
	"time"
)

// AppendMessages adds messages that nobody is to answer to a session, all of them or none.
type AppendMessages struct {
	SessionID SessionID
	Messages  []Message
	Branch    *MessageID // they begin a branch after this message, which becomes the current path; an empty id is the beginning. Nil = they come at the end of the current path
	Import    bool       // one event for all of them where there are many
	Worker    string     // this process, if it takes several transactions (NewWorker)
}

// Appended is what an AppendMessages came to.
type Appended struct {
	Session  Session   // as it is after the commit
	Messages []Message // as stored; of an import only those that have an event each
	FirstSeq int64
	LastSeq  int64
	Repeated bool    // the client_message_id was known: this is the message of the first time
	Events   []Event // with their numbers, to be published after the commit
}

// ImportFormat says how a history is written.
type ImportFormat string

// The formats of histories.
const (
	ImportLines ImportFormat = "jsonl" // a JSON object a line
	ImportJSON  ImportFormat = "json"  // a list of messages, or an export
)

// ImportMessages is the history of another system on its way in.
type ImportMessages struct {
	SessionID SessionID
	Body      io.Reader
	Size      int64 // bytes of Body; 0 = not known
	Values    int   // JSON values of Body
	Format    ImportFormat
	Source    Source // of messages that name none
}

// Imported is what an import came to.
type Imported struct {
	Imported int   `json:"imported" doc:"Messages."`
	FirstSeq int64 `json:"first_seq" doc:"0 if none was imported."`
	LastSeq  int64 `json:"last_seq"`
	Tokens   int   `json:"tokens"` // cl100k_base tokens of the messages
	Skipped  int   `json:"skipped" doc:"Messages of other branches, deleted messages, and user and assistant messages without content."`
	LeftOut  int   `json:"left_out" doc:"Pieces that were not imported, such as images; the messages say so."`
}

// ImportedData is the data of messages.imported.
type ImportedData struct {
	Imported int   `json:"imported"`
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
}

// ExportFormat says how a session is written out.
type ExportFormat string

// The formats of exports.
const (
	ExportJSON     ExportFormat = "json"     // the session, its messages and its summaries
	ExportLines    ExportFormat = "jsonl"    // its messages, one a line
	ExportMarkdown ExportFormat = "markdown" // to be read
)

// UserExport names the user whose data is exported.
type UserExport struct {
	Owner string
	User  string
	// OwnersView includes what end users do not see: webhooks and the owner's API keys.
	OwnersView bool
}

// The format of exports of users.
const (
	UserExportFormat  = "bobbin-user"
	UserExportVersion = 1
)

// UserExportInfo is the first file of an export of a user.
type UserExportInfo struct {
	Format     string    `json:"format"` // UserExportFormat
	Version    int       `json:"version"`
	User       string    `json:"user_id"`
	ExportedAt time.Time `json:"exported_at"`
}

// UserExportCounts is the last file of an export of a user: what is in it.
type UserExportCounts struct {
	Sessions          int   `json:"sessions"`
	Messages          int   `json:"messages"` // in these, of all branches
	Summaries         int   `json:"summaries"`
	Runs              int   `json:"runs"`
	MessagesElsewhere int   `json:"messages_elsewhere"` // of the user's, in sessions of others
	Memories          int   `json:"memories"`
	Files             int   `json:"files"`
	FileBytes         int64 `json:"file_bytes"`
	Keys              int   `json:"keys"`
}
