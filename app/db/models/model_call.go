package models

import (
	"time"

	"bobbin/app/core"
)

// ModelCall is a row of model_calls.
type ModelCall struct {
	ID              string `gorm:"primaryKey;type:uuid"`
	Owner           string
	UserID          string
	SessionID       Ref `gorm:"type:uuid"`
	RunID           Ref `gorm:"type:uuid"`
	Agent           string
	Purpose         string
	Model           string
	Provider        string
	EstimatedTokens int
	core.Usage      `gorm:"embedded"`
	CostMicroUsd    *int64
	FinishReason    string
	Error           string
	DurationNs      int64
	CreatedAt       time.Time `gorm:"autoCreateTime:false"`
}

// Core returns the call of the row.
func (r ModelCall) Core() core.ModelCall {
	return core.ModelCall{
		ID: r.ID, Owner: r.Owner, User: r.UserID, SessionID: core.SessionID(r.SessionID), RunID: core.RunID(r.RunID), Agent: r.Agent,
		Purpose: core.ModelPurpose(r.Purpose), Model: r.Model, Provider: r.Provider, Estimated: r.EstimatedTokens,
		Usage: r.Usage, Cost: r.CostMicroUsd, FinishReason: core.FinishReason(r.FinishReason), Error: r.Error,
		Duration: time.Duration(r.DurationNs), CreatedAt: toUTC(r.CreatedAt),
	}
}

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

// ModelCallFrom returns the row of a model call.
func ModelCallFrom(c core.ModelCall) ModelCall {
	return ModelCall{
		ID: c.ID, Owner: c.Owner, UserID: c.User, SessionID: Ref(c.SessionID), RunID: Ref(c.RunID), Agent: c.Agent,
		Purpose: string(c.Purpose), Model: c.Model, Provider: c.Provider, EstimatedTokens: c.Estimated,
		Usage: c.Usage, CostMicroUsd: c.Cost, FinishReason: string(c.FinishReason), Error: c.Error,
		DurationNs: int64(c.Duration), CreatedAt: c.CreatedAt,
	}
}
