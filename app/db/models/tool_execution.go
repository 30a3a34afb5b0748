package models

import (
	"time"

	"bobbin/app/core"
)

// ToolExecution is a row of tool_executions.
type ToolExecution struct {
	RunID      core.RunID `gorm:"primaryKey"`
	SessionID  core.SessionID
	Owner      string
	CallID     string `gorm:"primaryKey"`
	Attempt    int
	Tool       string
	StartedAt  time.Time
	FinishedAt *time.Time
}

// Core returns the execution of the row.
func (r ToolExecution) Core() core.ToolExecution {
	r.StartedAt, r.FinishedAt = toUTC(r.StartedAt), toUTCPtr(r.FinishedAt)
	return core.ToolExecution(r)
}
