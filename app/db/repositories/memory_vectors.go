package repositories

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// inVectorSpace narrows a query to memories with a vector in the space.
func inVectorSpace(space core.VectorSpace) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("embedding_model = ? AND dimension = ?", space.Model, space.Dimension)
	}
}

// Count returns how many memories of the scope have a vector in the space.
func (r *Memories) Count(ctx context.Context, tenant core.Tenant, space core.VectorSpace) (int, error) {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Scopes(inScope(tenant), inVectorSpace(space)).Count(&n).Error
	return int(n), wrapError(err, "memories of", tenant.Owner)
}

// Vectors returns the next vectors of the scope in the space; none = the end.
func (r *Memories) Vectors(ctx context.Context, tenant core.Tenant, q core.VectorQuery) ([]core.MemoryVector, error) {
	db := r.db.WithContext(ctx).Select("id, user_id, embedding, embedding_model, dimension").Scopes(inScope(tenant), inVectorSpace(q.Space))
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
	var rows []models.Memory
	if err := db.Order(order).Limit(q.Limit).Find(&rows).Error; err != nil {
		return nil, wrapError(err, "memories of", tenant.Owner)
	}
	return mapRows(rows, vectorIn(q.Space))
}

// vectorIn converts a row to a vector, nil if it is in another space.
func vectorIn(space core.VectorSpace) func(models.Memory) (core.MemoryVector, error) {
	return func(row models.Memory) (core.MemoryVector, error) {
		out := core.MemoryVector{ID: core.MemoryID(row.ID), UserID: row.UserID}
		if row.EmbeddingModel != space.Model || row.Dimension != space.Dimension {
			return out, nil
		}
		v, err := models.ParseVector(row.Embedding)
		if err != nil {
			return out, fmt.Errorf("embedding of memory %s: %w", row.ID, err)
		}
		out.Vector = v
		return out, nil
	}
}

// maxChanges bounds the changed memories that Changes lists.
const maxChanges = 4096

// Changes returns what happened to the owner's memories after that revision; with 0 and an
// empty space only the newest revision.
func (r *Memories) Changes(ctx context.Context, owner string, after int64, space core.VectorSpace) (core.MemoryChanges, error) {
	db := r.db.WithContext(ctx)
	var out core.MemoryChanges
	// Read first: later writes belong to the next call.
	err := db.Model(&models.MemoryRevision{}).Select("revision").Where("owner = ?", owner).Limit(1).Scan(&out.Revision).Error
	if err != nil {
		return out, wrapError(err, "memories of", owner)
	}
	out.Reload = after > out.Revision || after < out.Revision-keptDeletions
	if after == out.Revision || out.Reload || space.Model == "" {
		return out, nil
	}
	var rows []models.Memory
	err = db.Select("id, user_id, embedding, embedding_model, dimension").
		Where("owner = ? AND revision > ?", owner, after).Limit(maxChanges + 1).Find(&rows).Error
	if err != nil {
		return out, wrapError(err, "memories of", owner)
	}
	if out.Reload = len(rows) > maxChanges; out.Reload {
		return out, nil
	}
	if out.Changed, err = mapRows(rows, vectorIn(space)); err != nil {
		return out, err
	}
	// After the rows, so that the list includes one deleted in between.
	err = db.Model(&models.MemoryDeletion{}).Select("memory_id").Where("owner = ? AND revision > ?", owner, after).Scan(&out.Gone).Error
	return out, wrapError(err, "memories of", owner)
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

// outsideVectorSpace is the opposite of inVectorSpace.
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
// stored: memories that changed meanwhile stay as they are. It uses one transaction for
// each owner.
func (r *Memories) SetVectors(ctx context.Context, list []core.Memory) (int, error) {
	byOwner := map[string][]core.Memory{}
	for _, m := range list {
		byOwner[m.Owner] = append(byOwner[m.Owner], m)
	}
	stored := 0
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		n, err := r.setVectors(ctx, owner, byOwner[owner])
		if err != nil {
			return stored, wrapError(err, "memories of", owner)
		}
		stored += n
	}
	return stored, nil
}

func (r *Memories) setVectors(ctx context.Context, owner string, list []core.Memory) (stored int, err error) {
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		revision, err := nextRevision(tx, owner)
		if err != nil {
			return err
		}
		for _, m := range list {
			row := models.MemoryFrom(m)
			res := tx.Model(&models.Memory{}).Where("id = ? AND owner = ? AND revision = ?", m.ID, owner, m.Revision).
				UpdateColumns(map[string]any{
					"embedding": row.Embedding, "embedding_model": row.EmbeddingModel, "dimension": row.Dimension, "revision": revision,
				})
			if res.Error != nil {
				return res.Error
			}
			stored += int(res.RowsAffected)
		}
		return nil
	})
	return stored, err
}
