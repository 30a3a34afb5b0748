package models

import (
	"time"

	"bobbin/app/core"
)

// ToolExecution is a row of tool_executions.
type ToolExecution struct {
	RunID      string `gorm:"primaryKey"`
	CallID     string `gorm:"primaryKey"`
	SessionID  string
	Owner      string
	Attempt    int
	Tool       string
	StartedAt  time.Time
	FinishedAt *time.Time
}

// ToolExecutionFrom returns the row of an execution.
func ToolExecutionFrom(e core.ToolExecution) ToolExecution {
	return ToolExecution{
		RunID: string(e.RunID), CallID: e.CallID, SessionID: string(e.SessionID), Owner: e.Owner,
		Attempt: e.Attempt, Tool: e.Tool, StartedAt: e.StartedAt, FinishedAt: e.FinishedAt,
	}
}

// Core returns the execution of the row.
func (r ToolExecution) Core() core.ToolExecution {
	return core.ToolExecution{
		RunID: core.RunID(r.RunID), CallID: r.CallID, SessionID: core.SessionID(r.SessionID), Owner: r.Owner,
		Attempt: r.Attempt, Tool: r.Tool, StartedAt: toUTC(r.StartedAt), FinishedAt: toUTCPtr(r.FinishedAt),
	}
}
