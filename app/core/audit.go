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
)

// AuditEntry is something that an operator did. No secret is in it.
type AuditEntry struct {
	ID        AuditID         `json:"id"`
	CreatedAt time.Time       `json:"created_at"`
	Actor     string          `json:"actor"`  // who did it
	Action    string          `json:"action"` // one of the Audit… words
	Owner     string          `json:"owner"`  // whose things it was about; empty = nobody's alone
	Target    string          `json:"target"` // what it was done to
	Details   json.RawMessage `json:"details,omitempty"`
}
