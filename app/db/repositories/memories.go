package repositories

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Memories stores facts for users, with their vectors. Safe for concurrent use.
type Memories struct {
	db *gorm.DB
}

// NewMemories returns the memories in db.
func NewMemories(db *gorm.DB) *Memories { return &Memories{db: db} }

// withoutVector are the columns of a memory that callers see.
const withoutVector = "id, owner, user_id, content, metadata, embedding_model, dimension, created_at, updated_at"

// Create stores a new memory and returns it. The owner is required; a missing id and
// missing times are assigned.
func (r *Memories) Create(ctx context.Context, m core.Memory) (core.Memory, error) {
	if m.Owner == "" {
		return core.Memory{}, core.Errorf(core.ErrInvalid, "a memory needs an owner")
	}
	if err := checkMetadata(m.Metadata); err != nil {
		return core.Memory{}, err
	}
	if m.ID == "" {
		m.ID = core.NewID[core.MemoryID]()
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = core.Now()
	}
	if m.UpdatedAt.IsZero() {
		m.UpdatedAt = m.CreatedAt
	}
	m.Dimension = len(m.Embedding)
	id, repeated, err := commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) {
		row := models.MemoryFrom(m)
		return row.ID, insertRows(tx, &row)
	})
	switch {
	case err != nil:
		return core.Memory{}, wrapError(err, "memory", m.ID)
	case repeated:
		return r.Get(ctx, core.Tenant{Owner: m.Owner}, core.MemoryID(id))
	}
	return m, nil
}

// Get returns the memory, without its vector.
func (r *Memories) Get(ctx context.Context, tenant core.Tenant, id core.MemoryID) (core.Memory, error) {
	row, err := takeMemory(byID(ctx, r.db, "memory", id), tenant, id)
	if err != nil {
		return core.Memory{}, wrapError(err, "memory", id)
	}
	return row.Core()
}

func takeMemory(db *gorm.DB, tenant core.Tenant, id core.MemoryID) (models.Memory, error) {
	var row models.Memory
	err := db.Select(withoutVector).Scopes(inScope(tenant)).Where("id = ?", id).Take(&row).Error
	return row, err
}

// Found returns those of the memories that are in the scope, in no order, without their
// vectors.
func (r *Memories) Found(ctx context.Context, tenant core.Tenant, ids []core.MemoryID) ([]core.Memory, error) {
	list, err := findAll(r.db.WithContext(ctx).Select(withoutVector).Scopes(inScope(tenant)).Where("id IN ?", ids), models.Memory.Core)
	return list, wrapError(err, "memories of", tenant.Owner)
}

// List returns the memories in the scope, the newest first, without their vectors.
func (r *Memories) List(ctx context.Context, tenant core.Tenant, q core.PageQuery) (core.Page[core.Memory], error) {
	none := core.Page[core.Memory]{}
	limit, after, err := pageStart(q.Limit, q.Cursor, "memories")
	if err != nil {
		return none, err
	}
	db := orderNewestFirst(r.db.WithContext(ctx), after).Select(withoutVector).Scopes(inScope(tenant))
	var rows []models.Memory
	db = db.Model(&models.Memory{}).Session(&gorm.Session{})
	limit, err = fitRows(db, longColumns{texts: []string{"content"}, jsons: []string{"metadata"}}, limit, cmp.Or(q.Bytes, core.MaxPageBytes))
	if err == nil {
		err = db.Limit(limit + 1).Find(&rows).Error
	}
	if err != nil {
		return none, wrapError(err, "memories of", tenant.Owner)
	}
	return pageOf(rows, limit, models.Memory.Core, func(m models.Memory) position {
		return position{List: "memories", N: m.CreatedAt.UnixMicro(), ID: m.ID}
	})
}

// Update replaces content, metadata and vector of the memory with m's id, and returns it.
// If m has no vector, the stored one stays with the same content and is removed with a
// different one.
func (r *Memories) Update(ctx context.Context, tenant core.Tenant, m core.Memory) (core.Memory, error) {
	if err := checkMetadata(m.Metadata); err != nil {
		return core.Memory{}, err
	}
	var row models.Memory
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		var err error
		if row, err = takeMemory(byID(ctx, tx, "memory", m.ID).Scopes(withRowLock("memories", clause.LockingStrengthUpdate)), tenant, m.ID); err != nil {
			return err
		}
		wanted := models.MemoryFrom(m)
		changes := map[string]any{
			"content": wanted.Content, "metadata": wanted.Metadata, "updated_at": core.Now(),
		}
		if len(m.Embedding) > 0 || wanted.Content != row.Content {
			row.EmbeddingModel, row.Dimension = wanted.EmbeddingModel, wanted.Dimension
			if len(m.Embedding) == 0 {
				row.EmbeddingModel = ""
			}
			changes["embedding"], changes["embedding_model"], changes["dimension"] = wanted.Embedding, row.EmbeddingModel, row.Dimension
		}
		row.Content, row.Metadata = wanted.Content, wanted.Metadata
		row.UpdatedAt, _ = changes["updated_at"].(time.Time)
		return tx.Model(&models.Memory{}).Where("id = ?", m.ID).UpdateColumns(changes).Error
	})
	if err != nil {
		return core.Memory{}, wrapError(err, "memory", m.ID)
	}
	return row.Core()
}

// Delete removes the memory permanently.
func (r *Memories) Delete(ctx context.Context, tenant core.Tenant, id core.MemoryID) error {
	res := byID(ctx, r.db, "memory", id).Scopes(inScope(tenant)).Where("id = ?", id).Delete(&models.Memory{})
	if res.Error == nil && res.RowsAffected == 0 {
		return notFound("memory", id)
	}
	return wrapError(res.Error, "memory", id)
}
