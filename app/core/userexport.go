package core

import "time"

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
