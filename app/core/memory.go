package core

import (
	"encoding/json"
	"time"
)

// Memory is a fact that a user asked to keep. Memories live outside the agent
// graph: no node reads or writes them (W1, W11).
type Memory struct {
	ID             MemoryID        `json:"id"`
	Owner          string          `json:"-"`
	UserID         string          `json:"user_id"`
	Content        string          `json:"content"`
	Metadata       json.RawMessage `json:"metadata,omitempty"`
	Embedding      []float32       `json:"-"`
	EmbeddingModel string          `json:"embedding_model,omitempty"`
	CreatedAt      time.Time       `json:"created_at"`
	UpdatedAt      time.Time       `json:"updated_at"`
}
