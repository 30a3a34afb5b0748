package models

import (
	"encoding/json"
	"time"

	"bobbin/app/core"
)

// PromptSetup is a row of prompt_setups.
type PromptSetup struct {
	SessionID    string `gorm:"primaryKey"`
	Hash         string `gorm:"primaryKey"`
	Owner        string
	SystemPrompt string
	ToolUsage    string
	Tools        string    // JSON, byte for byte
	CreatedAt    time.Time `gorm:"autoCreateTime:false"`
}

// StoredBytes returns what storing the setup counts.
func (r PromptSetup) StoredBytes() int64 {
	return int64(core.StoredRow + len(r.SystemPrompt) + len(r.ToolUsage) + len(r.Tools))
}

// Core returns the setup of the row.
func (r PromptSetup) Core() core.PromptSetup {
	return core.PromptSetup{Hash: r.Hash, SystemPrompt: r.SystemPrompt, ToolUsage: r.ToolUsage, Tools: json.RawMessage(r.Tools)}
}
