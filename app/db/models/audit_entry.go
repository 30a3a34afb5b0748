package models

import (
	"time"

	"bobbin/app/core"
)

// AuditEntry is a row of audit_log.
type AuditEntry struct {
	ID        string `gorm:"primaryKey"`
	Owner     string
	Actor     string
	Action    string
	Target    string
	Details   JSON
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// TableName is the table's name.
func (AuditEntry) TableName() string { return "audit_log" }

// AuditEntryFrom returns the row of an entry.
func AuditEntryFrom(e core.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: string(e.ID), Owner: e.Owner, Actor: e.Actor, Action: e.Action, Target: e.Target,
		Details: jsonFrom(e.Details), CreatedAt: e.CreatedAt,
	}
}

// Core returns the entry of the row.
func (r AuditEntry) Core() core.AuditEntry {
	return core.AuditEntry{
		ID: core.AuditID(r.ID), Owner: r.Owner, Actor: r.Actor, Action: r.Action, Target: r.Target,
		Details: r.Details.rawMessage(), CreatedAt: toUTC(r.CreatedAt),
	}
}
