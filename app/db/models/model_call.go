package models

import (
	"time"

	"bobbin/app/core"
)

// ModelCall is a row of model_calls.
type ModelCall struct {
	ID              string `gorm:"primaryKey"`
	Owner           string
	UserID          string
	SessionID       Ref
	RunID           Ref
	Agent           string
	Purpose         string
	Model           string
	Provider        string
	EstimatedTokens int
	Usage           `gorm:"embedded"`
	CostMicroUsd    *int64
	FinishReason    string
	Error           string
	DurationNs      int64
	CreatedAt       time.Time `gorm:"autoCreateTime:false"`
}

// TableName is the table's name.
func (ModelCall) TableName() string { return "model_calls" }

// ModelCallFrom returns the row of a model call.
func ModelCallFrom(c core.ModelCall) ModelCall {
	return ModelCall{
		ID: c.ID, Owner: c.Owner, UserID: c.User, SessionID: Ref(c.SessionID), RunID: Ref(c.RunID), Agent: c.Agent,
		Purpose: string(c.Purpose), Model: c.Model, Provider: c.Provider, EstimatedTokens: c.Estimated,
		Usage: usageFrom(c.Usage), CostMicroUsd: c.Cost, FinishReason: string(c.FinishReason), Error: c.Error,
		DurationNs: int64(c.Duration), CreatedAt: c.CreatedAt,
	}
}

// Core returns the model call of the row.
func (r ModelCall) Core() core.ModelCall {
	return core.ModelCall{
		ID: r.ID, Owner: r.Owner, User: r.UserID, SessionID: core.SessionID(r.SessionID), RunID: core.RunID(r.RunID),
		Agent: r.Agent, Purpose: core.ModelPurpose(r.Purpose), Model: r.Model, Provider: r.Provider,
		Estimated: r.EstimatedTokens, Usage: r.Usage.core(), Cost: r.CostMicroUsd, FinishReason: core.FinishReason(r.FinishReason),
		Error: r.Error, Duration: time.Duration(r.DurationNs), CreatedAt: utc(r.CreatedAt),
	}
}
