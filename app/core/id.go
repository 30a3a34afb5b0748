package core

import (
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Identifiers are UUIDv7 in their 36 character text form, so that they sort by
// the time they were made. Each kind is its own type: a run's id cannot be
// passed where a session's is wanted.
type (
	// SessionID names a session.
	SessionID string
	// MessageID names a message.
	MessageID string
	// RunID names a run.
	RunID string
	// SummaryID names one version of a session's summary.
	SummaryID string
	// MemoryID names a memory.
	MemoryID string
	// BlobID names a stored blob.
	BlobID string
	// KeyID names an API key of the database.
	KeyID string
	// AuditID names an entry of the audit log.
	AuditID string
	// ApprovalID names a question whether a tool may start.
	ApprovalID string
	// DeletionID names a deletion of a session or a user.
	DeletionID string
	// InstructionID names a standing instruction.
	InstructionID string
	// SlackItemID names something that Slack sent.
	SlackItemID string
)

// NewID returns a new identifier of the wanted kind. Within one process later
// calls give greater identifiers. It panics if the system's random source fails,
// as nothing can go on without one. Safe for concurrent use.
func NewID[T ~string]() T {
	// google/uuid is the one dependency of this package: a clock-ordered
	// generator that never steps back is not worth writing again.
	return T(uuid.Must(uuid.NewV7()).String())
}

// FirstID returns the smallest identifier that can have been made at the time or later.
func FirstID[T ~string](at time.Time) T {
	hex := fmt.Sprintf("%012x", max(at.UnixMilli(), 0))
	return T(hex[:8] + "-" + hex[8:12] + "-7000-8000-000000000000")
}

// ValidID reports whether id has the form that NewID gives.
func ValidID[T ~string](id T) bool {
	if len(id) != 36 {
		return false
	}
	_, err := uuid.Parse(string(id))
	return err == nil
}

// DraftID returns the id of the message that an attempt of the run writes while
// the log holds position messages of the run after its question. It follows from
// these alone, so that the text of an attempt that was lost can be taken back
// (message.discarded) by those who were told nothing else of it.
func (r Run) DraftID(attempt, position int) MessageID {
	return MessageID(derivedID(string(r.ID), fmt.Sprintf("draft %s %d %d", r.ID, attempt, position)))
}

// derivedID returns the id that follows from the text, with the time of another id, beside
// which it sorts.
func derivedID(other, text string) string {
	sum := sha256.Sum256([]byte(text))
	var id uuid.UUID
	copy(id[:], sum[:])
	if time, err := uuid.Parse(other); err == nil {
		copy(id[:6], time[:6])
	}
	const version, variant = 0x70, 0x80 // 7 and RFC 9562, as of other ids
	id[6], id[8] = id[6]&0x0f|version, id[8]&0x3f|variant
	return id.String()
}
