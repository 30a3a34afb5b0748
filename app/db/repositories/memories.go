package repositories

import (
	"cmp"
	"context"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Memories stores facts for users, with their vectors. Safe for concurrent use.
type Memories struct{ db *gorm.DB }

// NewMemories returns the memories in db.
func NewMemories(db *gorm.DB) *Memories { return &Memories{db: db} }

// withoutVector are the columns of a memory that callers see.
const withoutVector = "id, owner, user_id, content, metadata, embedding_model, dimension, created_at, updated_at"

// Create stores a new memory and returns it. The owner is required; a missing id and
// missing times are assigned.
func (r *Memories) Create(ctx context.Context, m core.Memory) (core.Memory, error) {
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
	err := commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) { return string(m.ID), commit.Insert(tx, &m) }, func(id string) (err error) {
		m, err = r.Get(ctx, core.Tenant{Owner: m.Owner}, core.MemoryID(id))
		return err
	})
	return m, wrapError(err, "memory", m.ID)
}

// Get returns the memory, without its vector.
func (r *Memories) Get(ctx context.Context, tenant core.Tenant, id core.MemoryID) (core.Memory, error) {
	return takeMemory(byID(ctx, r.db, "memory", id), tenant, id)
}

func takeMemory(db *gorm.DB, tenant core.Tenant, id core.MemoryID) (core.Memory, error) {
	return takeRow[core.Memory](db.Select(withoutVector).Where(inScope(tenant)).Where("id = ?", id), "memory", id)
}

// Found returns those of the memories that are in the scope, in no order, without their
// vectors.
func (r *Memories) Found(ctx context.Context, tenant core.Tenant, ids []core.MemoryID) ([]core.Memory, error) {
	list, err := findRows[core.Memory](r.db.WithContext(ctx).Select(withoutVector).Where(inScope(tenant)).Where("id IN ?", ids))
	return list, wrapError(err, "memories of", tenant.Owner)
}

// List returns the memories in the scope, the newest first, without their vectors.
func (r *Memories) List(ctx context.Context, tenant core.Tenant, q core.PageQuery) (core.Page[core.Memory], error) {
	long := longColumns{texts: []string{"content"}, jsons: []string{"metadata"}}
	rows := r.db.WithContext(ctx).Model(&core.Memory{}).Select(withoutVector).Where(inScope(tenant))
	return findPage(rows, keyset[core.Memory]{list: "memories", column: "created_at"}, q, long, func(m core.Memory) position { return createdAt(m.CreatedAt, m.ID) })
}

// Update replaces content, metadata and vector of the memory with m's id, and returns it.
// If m has no vector, the stored one stays with the same content and is removed with a
// different one.
func (r *Memories) Update(ctx context.Context, tenant core.Tenant, m core.Memory) (core.Memory, error) {
	var row core.Memory
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		var err error
		if row, err = takeMemory(byID(ctx, tx, "memory", m.ID).Scopes(withRowLock("memories", clause.LockingStrengthUpdate)), tenant, m.ID); err != nil {
			return err
		}
		row.UpdatedAt = core.Now()
		changes := map[string]any{"content": m.Content, "metadata": models.RawJSON(m.Metadata), "updated_at": row.UpdatedAt}
		if len(m.Embedding) > 0 || m.Content != row.Content {
			row.EmbeddingModel, row.Dimension = m.EmbeddingModel, len(m.Embedding)
			if len(m.Embedding) == 0 {
				row.EmbeddingModel = ""
			}
			changes["embedding"], changes["embedding_model"], changes["dimension"] = models.Vector(m.Embedding), row.EmbeddingModel, row.Dimension
		}
		row.Content, row.Metadata = m.Content, m.Metadata
		return tx.Model(&core.Memory{}).Where("id = ?", m.ID).UpdateColumns(changes).Error
	})
	return row, wrapError(err, "memory", m.ID)
}

// Delete removes the memory permanently.
func (r *Memories) Delete(ctx context.Context, tenant core.Tenant, id core.MemoryID) error {
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		res := byID(ctx, tx, "memory", id).Where(inScope(tenant)).Where("id = ?", id).Delete(&core.Memory{})
		if res.Error == nil && res.RowsAffected == 0 {
			return notFound("memory", id)
		}
		return cmp.Or(res.Error, eraseAnswers(tx, tenant.Owner, []core.MemoryID{id}))
	})
	return wrapError(err, "memory", id)
}

// Vectors returns the next vectors of the scope in the space; none = the end.
func (r *Memories) Vectors(ctx context.Context, tenant core.Tenant, q core.VectorQuery) ([]core.MemoryVector, error) {
	db := r.db.WithContext(ctx).Model(&core.Memory{}).Select("id, user_id, embedding").Where(inScope(tenant)).
		Where("embedding_model = ? AND dimension = ?", q.Space.Model, q.Space.Dimension)
	order := "user_id, id"
	switch {
	case tenant.User != "":
		order = "id"
		if q.After.ID != "" {
			db = db.Where("id > ?", q.After.ID)
		}
	case q.After.ID != "":
		db = db.Where("(user_id, id) > (?, ?)", q.After.UserID, q.After.ID)
	}
	list, err := scan[[]core.MemoryVector](db.Order(order).Limit(q.Limit))
	return list, wrapError(err, "memories of", tenant.Owner)
}

// CountStale returns how many memories of the scope, without an owner of all, have no vector in the space. It reads
// no others, so it is fast when nothing is stale.
func (r *Memories) CountStale(ctx context.Context, tenant core.Tenant, space core.VectorSpace) (int, error) {
	wheres := []string{"embedding_model < @model", "embedding_model > @model"}
	if space.Dimension > 0 {
		wheres = append(wheres, "embedding_model = @model AND dimension < @dimension", "embedding_model = @model AND dimension > @dimension")
	}
	scope := map[bool]string{true: " AND owner = @owner"}[tenant.Owner != ""] + map[bool]string{true: " AND user_id = @user"}[tenant.User != ""]
	for i, where := range wheres {
		wheres[i] = "(SELECT COUNT(*) FROM memories WHERE " + where + scope + ")"
	}
	var n int
	err := r.db.WithContext(ctx).Raw("SELECT "+strings.Join(wheres, " + "), map[string]any{
		"owner": tenant.Owner, "user": tenant.User, "model": space.Model, "dimension": space.Dimension,
	}).Scan(&n).Error
	return n, wrapError(err, "memories of", tenant.Owner)
}

// Stale returns memories of the scope that have no vector in the space, ordered by id; a
// scope without an owner means all owners. The cursor is the last id of the previous page.
func (r *Memories) Stale(ctx context.Context, tenant core.Tenant, space core.VectorSpace, q core.PageQuery) (none core.Page[core.Memory], err error) {
	oldest := keyset[core.Memory]{list: "stale memories", column: "id", ascending: true}
	after, err := parseCursor(q.Cursor, oldest.list)
	if err != nil {
		return none, err
	}
	outside := gorm.Expr("(embedding_model <> ? OR dimension <> ?)", space.Model, space.Dimension)
	if space.Dimension == 0 {
		outside = gorm.Expr("embedding_model <> ?", space.Model)
	}
	db := r.db.WithContext(ctx).Select(withoutVector).Where(outside)
	if tenant.Owner != "" {
		db = db.Where(inScope(tenant))
	}
	rows, err := findRows[core.Memory](oldest.seek(db, after).Limit(q.Limit + 1))
	return pageOf(rows, q.Limit, func(m core.Memory) position { return position{List: oldest.list, ID: string(m.ID)} }), wrapError(err, "memories of", tenant.Owner)
}

// SetVectors stores vectors of memories that were read before, and returns how many it
// stored: memories whose content changed meanwhile stay as they are.
func (r *Memories) SetVectors(ctx context.Context, list []core.Memory) (stored int, err error) {
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		stored = 0
		for _, m := range list {
			res := tx.Model(&core.Memory{}).Where("id = ? AND owner = ? AND content = ?", m.ID, m.Owner, m.Content).
				UpdateColumns(map[string]any{"embedding": models.Vector(m.Embedding), "embedding_model": m.EmbeddingModel, "dimension": len(m.Embedding)})
			if res.Error != nil {
				return res.Error
			}
			stored += int(res.RowsAffected)
		}
		return nil
	})
	return stored, wrapError(err, "memories", "vectors")
}
