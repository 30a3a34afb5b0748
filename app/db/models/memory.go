package models

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"bobbin/app/core"
)

// Memory is a row of memories.
type Memory struct {
	ID             string `gorm:"primaryKey"`
	Owner          string
	UserID         string
	Content        string
	Metadata       JSON
	Embedding      []byte // float32, little endian; NULL = none
	EmbeddingModel string
	CreatedAt      time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt      time.Time `gorm:"autoUpdateTime:false"`
}

// TableName is the table's name.
func (Memory) TableName() string { return "memories" }

// MemoryFrom returns the row of a memory.
func MemoryFrom(m core.Memory) Memory {
	row := Memory{
		ID: string(m.ID), Owner: m.Owner, UserID: m.UserID, Content: m.Content, Metadata: jsonFrom(m.Metadata),
		EmbeddingModel: m.EmbeddingModel, CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
	for _, f := range m.Embedding {
		row.Embedding = binary.LittleEndian.AppendUint32(row.Embedding, math.Float32bits(f))
	}
	return row
}

// Core returns the memory of the row.
func (r Memory) Core() (core.Memory, error) {
	m := core.Memory{
		ID: core.MemoryID(r.ID), Owner: r.Owner, UserID: r.UserID, Content: r.Content, Metadata: r.Metadata.raw(),
		EmbeddingModel: r.EmbeddingModel, CreatedAt: utc(r.CreatedAt), UpdatedAt: utc(r.UpdatedAt),
	}
	if len(r.Embedding)%4 != 0 {
		return core.Memory{}, fmt.Errorf("embedding of memory %s: %d bytes are not whole numbers", r.ID, len(r.Embedding))
	}
	for b := r.Embedding; len(b) > 0; b = b[4:] {
		m.Embedding = append(m.Embedding, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return m, nil
}
