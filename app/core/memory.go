package core

import (
	"encoding/json"
	"time"
)

// Memory is a fact that a user asked to keep. Memories live outside the agent
// graph: no node reads or writes them.
type Memory struct {
	ID             MemoryID        `json:"id" gorm:"primaryKey"`
	Owner          string          `json:"-"`
	UserID         string          `json:"user_id"`
	Content        string          `json:"content"`
	Metadata       json.RawMessage `json:"metadata,omitempty" schema:"Metadata" gorm:"serializer:json"`
	Embedding      []float32       `json:"-" gorm:"serializer:vector"`
	EmbeddingModel string          `json:"embedding_model" doc:"Empty if it could not be embedded."`
	Dimension      int             `json:"dimension"` // of Embedding; 0 = it has none
	Stale          bool            `json:"stale" doc:"Search does not find it until it is reindexed." gorm:"-"`
	CreatedAt      time.Time       `json:"created_at" gorm:"autoCreateTime:false"`
	UpdatedAt      time.Time       `json:"updated_at" gorm:"autoUpdateTime:false"`
}

// StoredBytes returns what storing the memory counts.
func (m Memory) StoredBytes() int64 {
	return int64(StoredRow + len(m.Content) + len(m.Metadata) + 4*len(m.Embedding))
}

// SavedMemory is a memory that was just written.
type SavedMemory struct {
	Memory
	Notice string `json:"notice,omitempty" doc:"Why search does not find it yet."`
}

// VectorSpace names the vectors that can be compared with each other. Without a
// model there are none.
type VectorSpace struct {
	Model     string
	Dimension int // 0 = any: the model has not said yet
}

// MemorySearch asks for the memories that are nearest to a text.
type MemorySearch struct {
	Query    string   `json:"query" required:"true" min:"1" max:"8192"`
	Limit    int      `json:"limit" min:"0" max:"100" default:"10" doc:"0 = the default."`
	MinScore *float32 `json:"min_score" min:"-1" max:"1"` // nil = no bound
}

// How many memories a search may answer.
const (
	DefaultMemoryMatches = 10
	MaxMemoryMatches     = 100
)

// MemoryMatch is a memory that a search found.
type MemoryMatch struct {
	Memory Memory  `json:"memory"`
	Score  float32 `json:"score" doc:"Cosine similarity."`
}

// MemoryMatches is what a search found, the best first, of equals the newest.
type MemoryMatches struct {
	Items          []MemoryMatch `json:"items"` // never nil
	EmbeddingModel string        `json:"embedding_model"`
	Matches        string        `json:"matches" enum:"words,meaning" doc:"Whether the embedding model matches words or meaning."`
	Searched       int           `json:"searched"`
	Stale          int           `json:"stale" doc:"Memories that were not searched."`
}

// What an embedding model brings near to each other.
const (
	MatchesWords   = "words"   // texts of the same words
	MatchesMeaning = "meaning" // texts of the same meaning
)

// MemoryVector is what a search compares of a memory.
type MemoryVector struct {
	ID     MemoryID
	UserID string
	Vector []float32 `gorm:"column:embedding;serializer:vector"` // nil = it has none in the space that was asked for
}

// VectorQuery asks for the next vectors of a scope, in the order of user and id.
type VectorQuery struct {
	Space VectorSpace
	After MemoryVector // the last one of the batch before; the zero value = from the beginning
	Limit int
}

// Reindex asks to embed stale memories anew, one batch of them.
type Reindex struct {
	Limit     int    `json:"limit" min:"0" max:"256" default:"64" doc:"The size of the batch; 0 = the default."`
	Cursor    string `json:"cursor" max:"512" doc:"The next_cursor of the previous batch."`
	AllOwners bool   `json:"all_owners" default:"false" doc:"Of all owners: only without an API key, from the server's machine; otherwise 403."`
}

// How many memories one call of reindex takes.
const (
	DefaultReindexBatch = 64
	MaxReindexBatch     = 256
)

// Reindexed is what became of one batch.
type Reindexed struct {
	Embedded       int     `json:"embedded"`
	Failed         int     `json:"failed" doc:"Memories that the model refused."`
	Remaining      int     `json:"remaining"` // stale ones, those that failed included
	NextCursor     *string `json:"next_cursor" schema:"NextCursor"`
	EmbeddingModel string  `json:"embedding_model"`
}
