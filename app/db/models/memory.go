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
	Dimension      int
	CreatedAt      time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt      time.Time `gorm:"autoUpdateTime:false"`
}

// MemoryFrom returns the row of a memory.
func MemoryFrom(m core.Memory) Memory {
	return Memory{
		ID: string(m.ID), Owner: m.Owner, UserID: m.UserID, Content: m.Content, Metadata: jsonFrom(m.Metadata),
		Embedding: Vector(m.Embedding), EmbeddingModel: m.EmbeddingModel, Dimension: len(m.Embedding),
		CreatedAt: m.CreatedAt, UpdatedAt: m.UpdatedAt,
	}
}

// Core returns the memory of the row.
func (r Memory) Core() (core.Memory, error) {
	m := core.Memory{
		ID: core.MemoryID(r.ID), Owner: r.Owner, UserID: r.UserID, Content: r.Content, Metadata: r.Metadata.rawMessage(),
		EmbeddingModel: r.EmbeddingModel, Dimension: r.Dimension,
		CreatedAt: toUTC(r.CreatedAt), UpdatedAt: toUTC(r.UpdatedAt),
	}
	var err error
	if m.Embedding, err = ParseVector(r.Embedding); err != nil {
		return core.Memory{}, fmt.Errorf("embedding of memory %s: %w", r.ID, err)
	}
	return m, nil
}

// Vector returns a vector as it is stored; nil for none.
func Vector(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	out := make([]byte, 0, 4*len(v))
	for _, f := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(f))
	}
	return out
}

// ParseVector reads a stored vector; nil for none.
func ParseVector(b []byte) ([]float32, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%d bytes are not whole numbers", len(b))
	}
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v, nil
}
