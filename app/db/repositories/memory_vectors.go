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

// in narrows a question about memories to those whose vectors are in the space.
func in(space core.VectorSpace) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("embedding_model = ? AND dimension = ?", space.Model, space.Dimension)
	}
}

// Count returns how many memories of the scope have a vector in the space.
func (r *Memories) Count(ctx context.Context, scope core.Scope, space core.VectorSpace) (int, error) {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Scopes(visible(scope), in(space)).Count(&n).Error
	return int(n), failure(err, "memories of", scope.Owner)
}

// Vectors returns the next vectors of the scope in the space; none = there are no
// more.
func (r *Memories) Vectors(ctx context.Context, scope core.Scope, q core.VectorQuery) ([]core.MemoryVector, error) {
	db := r.db.WithContext(ctx).Select("id, user_id, embedding, embedding_model, dimension").Scopes(visible(scope), in(q.Space))
	order := "user_id, id"
	switch {
	case scope.User != "":
		order = "id"
		if q.After.ID != "" {
			db = db.Where("id > ?", q.After.ID)
		}
	case q.After.ID != "":
		db = db.Where("(user_id, id) > (?, ?)", q.After.UserID, q.After.ID)
	}
	var rows []models.Memory
	if err := db.Order(order).Limit(q.Limit).Find(&rows).Error; err != nil {
		return nil, failure(err, "memories of", scope.Owner)
	}
	return values(rows, vectorIn(q.Space))
}

// vectorIn makes a vector of a row; it is nil if it lies in another space.
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

// maxChanges is how many changed memories are told one by one.
const maxChanges = 4096

// Changes returns what happened to the owner's memories after that revision; 0 and
// an empty space only ask for the newest one.
func (r *Memories) Changes(ctx context.Context, owner string, after int64, space core.VectorSpace) (core.MemoryChanges, error) {
	db := r.db.WithContext(ctx)
	var out core.MemoryChanges
	// Read first: what is written from here on belongs to the next call.
	err := db.Model(&models.MemoryRevision{}).Select("revision").Where("owner = ?", owner).Limit(1).Scan(&out.Revision).Error
	if err != nil {
		return out, failure(err, "memories of", owner)
	}
	out.Reload = after > out.Revision || after < out.Revision-keptDeletions
	if after == out.Revision || out.Reload || space.Model == "" {
		return out, nil
	}
	var rows []models.Memory
	err = db.Select("id, user_id, embedding, embedding_model, dimension").
		Where("owner = ? AND revision > ?", owner, after).Limit(maxChanges + 1).Find(&rows).Error
	if err != nil {
		return out, failure(err, "memories of", owner)
	}
	if out.Reload = len(rows) > maxChanges; out.Reload {
		return out, nil
	}
	if out.Changed, err = values(rows, vectorIn(space)); err != nil {
		return out, err
	}
	// After the rows, so that one that was deleted in between is gone.
	err = db.Model(&models.MemoryDeletion{}).Select("memory_id").Where("owner = ? AND revision > ?", owner, after).Scan(&out.Gone).Error
	return out, failure(err, "memories of", owner)
}

// CountStale returns how many memories of the scope have no vector in the space.
// It reads no others, so it is quick where nothing is stale.
func (r *Memories) CountStale(ctx context.Context, scope core.Scope, space core.VectorSpace) (int, error) {
	wheres := []string{"embedding_model < @model", "embedding_model > @model"}
	if space.Dimension > 0 {
		wheres = append(wheres, "embedding_model = @model AND dimension < @dimension", "embedding_model = @model AND dimension > @dimension")
	}
	user := ""
	if scope.User != "" {
		user = " AND user_id = @user"
	}
	for i, where := range wheres {
		wheres[i] = "(SELECT COUNT(*) FROM memories WHERE owner = @owner AND " + where + user + ")"
	}
	var n int
	err := r.db.WithContext(ctx).Raw("SELECT "+strings.Join(wheres, " + "), map[string]any{
		"owner": scope.Owner, "user": scope.User, "model": space.Model, "dimension": space.Dimension,
	}).Scan(&n).Error
	return n, failure(err, "memories of", scope.Owner)
}

// CountAllStale is CountStale of every owner.
func (r *Memories) CountAllStale(ctx context.Context, space core.VectorSpace) (int, error) {
	var n int64
	err := r.db.WithContext(ctx).Model(&models.Memory{}).Scopes(outside(space)).Count(&n).Error
	return int(n), failure(err, "memories of", "all owners")
}

// outside is the opposite of in.
func outside(space core.VectorSpace) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		if space.Dimension == 0 {
			return db.Where("embedding_model <> ?", space.Model)
		}
		return db.Where("(embedding_model <> ? OR dimension <> ?)", space.Model, space.Dimension)
	}
}

// Stale returns memories of the scope that have no vector in the space, in the
// order of their ids; a scope without an owner is every owner's. The cursor is the
// last id of the page before.
func (r *Memories) Stale(ctx context.Context, scope core.Scope, space core.VectorSpace, q core.PageQuery) (core.Page[core.Memory], error) {
	none := core.Page[core.Memory]{}
	after, more, err := parseCursor(q.Cursor, "stale memories")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Select(withoutVector).Scopes(outside(space))
	if scope.Owner != "" {
		db = db.Scopes(visible(scope))
	}
	if more {
		db = db.Where("id > ?", after.ID)
	}
	var rows []models.Memory
	if err := db.Order("id").Limit(q.Limit + 1).Find(&rows).Error; err != nil {
		return none, failure(err, "memories of", scope.Owner)
	}
	return page(rows, q.Limit, models.Memory.Core, func(m models.Memory) position {
		return position{List: "stale memories", ID: m.ID}
	})
}

// SetVectors stores the vectors of memories that were read before, and returns how
// many it stored: of one that was changed meanwhile it leaves what it has. Each
// owner's are one transaction.
func (r *Memories) SetVectors(ctx context.Context, list []core.Memory) (int, error) {
	byOwner := map[string][]core.Memory{}
	for _, m := range list {
		byOwner[m.Owner] = append(byOwner[m.Owner], m)
	}
	stored := 0
	for _, owner := range slices.Sorted(maps.Keys(byOwner)) {
		n, err := r.setVectors(ctx, owner, byOwner[owner])
		if err != nil {
			return stored, failure(err, "memories of", owner)
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
