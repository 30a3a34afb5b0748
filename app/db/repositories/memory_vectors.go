package repositories

import (
	"context"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Vectors returns the next vectors of the scope in the space; none = the end.
func (r *Memories) Vectors(ctx context.Context, tenant core.Tenant, q core.VectorQuery) ([]core.MemoryVector, error) {
	db := r.db.WithContext(ctx).Select("id, user_id, embedding, embedding_model, dimension").Scopes(inScope(tenant)).
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
	list, err := findAll(db.Order(order).Limit(q.Limit), func(row models.Memory) (core.MemoryVector, error) {
		v, err := models.ParseVector(row.Embedding)
		if err != nil {
			err = fmt.Errorf("embedding of memory %s: %w", row.ID, err)
		}
		return core.MemoryVector{ID: core.MemoryID(row.ID), UserID: row.UserID, Vector: v}, err
	})
	return list, wrapError(err, "memories of", tenant.Owner)
}

// CountStale returns how many memories of the scope have no vector in the space. It reads
// no others, so it is fast when nothing is stale.
func (r *Memories) CountStale(ctx context.Context, tenant core.Tenant, space core.VectorSpace) (int, error) {
	wheres := []string{"embedding_model < @model", "embedding_model > @model"}
	if space.Dimension > 0 {
		wheres = append(wheres, "embedding_model = @model AND dimension < @dimension", "embedding_model = @model AND dimension > @dimension")
	}
	user := ""
	if tenant.User != "" {
		user = " AND user_id = @user"
	}
	for i, where := range wheres {
		wheres[i] = "(SELECT COUNT(*) FROM memories WHERE owner = @owner AND " + where + user + ")"
	}
	var n int
	err := r.db.WithContext(ctx).Raw("SELECT "+strings.Join(wheres, " + "), map[string]any{
		"owner": tenant.Owner, "user": tenant.User, "model": space.Model, "dimension": space.Dimension,
	}).Scan(&n).Error
	return n, wrapError(err, "memories of", tenant.Owner)
}

// CountAllStale is CountStale for all owners.
func (r *Memories) CountAllStale(ctx context.Context, space core.VectorSpace) (int, error) {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Scopes(outsideVectorSpace(space)).Count(&n).Error
	return int(n), wrapError(err, "memories of", "all owners")
}

// outsideVectorSpace narrows a query to memories without a vector in the space.
func outsideVectorSpace(space core.VectorSpace) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		if space.Dimension == 0 {
			return db.Where("embedding_model <> ?", space.Model)
		}
		return db.Where("(embedding_model <> ? OR dimension <> ?)", space.Model, space.Dimension)
	}
}

// Stale returns memories of the scope that have no vector in the space, ordered by id; a
// scope without an owner means all owners. The cursor is the last id of the previous page.
func (r *Memories) Stale(ctx context.Context, tenant core.Tenant, space core.VectorSpace, q core.PageQuery) (core.Page[core.Memory], error) {
	none := core.Page[core.Memory]{}
	after, err := parseCursor(q.Cursor, "stale memories")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Select(withoutVector).Scopes(outsideVectorSpace(space))
	if tenant.Owner != "" {
		db = db.Scopes(inScope(tenant))
	}
	if after.isSet() {
		db = db.Where("id > ?", after.ID)
	}
	var rows []models.Memory
	if err := db.Order("id").Limit(q.Limit + 1).Find(&rows).Error; err != nil {
		return none, wrapError(err, "memories of", tenant.Owner)
	}
	return pageOf(rows, q.Limit, models.Memory.Core, func(m models.Memory) position {
		return position{List: "stale memories", ID: m.ID}
	})
}

// SetVectors stores vectors of memories that were read before, and returns how many it
// stored: memories whose content changed meanwhile stay as they are.
func (r *Memories) SetVectors(ctx context.Context, list []core.Memory) (stored int, err error) {
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		stored = 0
		for _, m := range list {
			row := models.MemoryFrom(m)
			res := tx.Model(&models.Memory{}).Where("id = ? AND owner = ? AND content = ?", m.ID, m.Owner, m.Content).
				UpdateColumns(map[string]any{"embedding": row.Embedding, "embedding_model": row.EmbeddingModel, "dimension": row.Dimension})
			if res.Error != nil {
				return res.Error
			}
			stored += int(res.RowsAffected)
		}
		return nil
	})
	return stored, wrapError(err, "memories", "vectors")
}
