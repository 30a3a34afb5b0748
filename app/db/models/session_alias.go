package models

import "time"

// SessionAlias is a row of session_aliases.
type SessionAlias struct {
	Owner     string `gorm:"primaryKey"`
	Surface   string `gorm:"primaryKey"`
	Alias     string `gorm:"primaryKey"`
	SessionID string
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}
