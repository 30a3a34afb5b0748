package core

import (
	"encoding/json"
	"time"
)

// What an operator did, as the audit log has it.
const (
	AuditKeyCreated     = "key.created"
	AuditKeyRevoked     = "key.revoked"
	AuditSessionsPurged = "sessions.purged"
	AuditUserPurged     = "user.purged"

	AuditSessionsExpired = "sessions.expired" // by retention
	AuditBackupMade      = "backup.made"
	AuditConfigChanged   = "config.changed" // found at a start; Details are a StartDetails
)

// StartDetails are what a server was started with, as the audit log has it.
type StartDetails struct {
	Version  string                   `json:"version"`
	Changed  map[string]SettingChange `json:"changed"`  // since the replica's entry before
	Settings map[string]string        `json:"settings"` // all that are not as by default, secrets masked
}

// SettingChange is a setting that was changed; empty = as by default.
type SettingChange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// AuditEntry is something that an operator did. No secret is in it.
type AuditEntry struct {
	ID        AuditID         `json:"id" gorm:"primaryKey"`
	CreatedAt time.Time       `json:"created_at" gorm:"autoCreateTime:false"`
	Actor     string          `json:"actor"`  // who did it
	Action    string          `json:"action"` // one of the Audit… words
	Owner     string          `json:"owner"`  // whose things it was about; empty = nobody's alone
	Target    string          `json:"target"` // what it was done to
	Details   json.RawMessage `json:"details,omitempty" gorm:"serializer:json"`
}
