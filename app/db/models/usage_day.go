package models

import "bobbin/app/core"

// The levels of usage days: whose calls a row sums. A row of a level with a session has no
// agent and no model; one without a user has no user.
const (
	UsageOfAll         = "all"
	UsageOfUser        = "user"
	UsageOfSession     = "session"
	UsageOfUserSession = "user_session"
)

// UsageDay is a row of usage_days: the usage of model calls of one day.
type UsageDay struct {
	Owner           string `gorm:"primaryKey"`
	Level           string `gorm:"primaryKey"` // whose they were; see the constants
	UserID          string `gorm:"primaryKey"`
	SessionID       string `gorm:"primaryKey"`
	Day             string `gorm:"primaryKey"` // of UTC: 2026-01-31
	Agent           string `gorm:"primaryKey"`
	Model           string `gorm:"primaryKey"`
	Shard           int    `gorm:"primaryKey"`
	core.UsageTotal `gorm:"embedded"`
	SpentTokens     int64 // that count against a limit
}
