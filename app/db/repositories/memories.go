package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Memories stores what users asked to keep, with its vectors. Each write raises
// its owner's revision, in the same transaction, so that revisions are in the
// order of commits. Safe for concurrent use.
type Memories struct {
	db *gorm.DB
}

// NewMemories returns the memories in db.
func NewMemories(db *gorm.DB) *Memories { return &Memories{db: db} }

// withoutVector are the columns of a memory that callers see.
const withoutVector = "id, owner, user_id, content, metadata, embedding_model, dimension, revision, created_at, updated_at"

// Create stores a new memory and returns it. The owner is required; id and times
// are given where they are missing.
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
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if m.Revision, err = nextRevision(tx, m.Owner); err != nil {
			return err
		}
		row := models.MemoryFrom(m)
		return insert(tx, &row)
	})
	if err != nil {
		return core.Memory{}, failure(err, "memory", m.ID)
	}
	return m, nil
}

// nextRevision raises the owner's revision. It holds the owner's row until the
// transaction ends: one owner's writes come one after the other.
func nextRevision(tx *gorm.DB, owner string) (int64, error) {
	if !storableText(owner) {
		return 0, core.Errorf(core.ErrInvalid, unstorable)
	}
	var revision int64
	err := tx.Raw(`INSERT INTO memory_revisions (owner, revision) VALUES (?, 1)
		ON CONFLICT (owner) DO UPDATE SET revision = memory_revisions.revision + 1 RETURNING revision`, owner).Scan(&revision).Error
	return revision, err
}

// Get returns the memory, without its vector.
func (r *Memories) Get(ctx context.Context, scope core.Scope, id core.MemoryID) (core.Memory, error) {
	if err := known("memory", id); err != nil {
		return core.Memory{}, err
	}
	row, err := takeMemory(r.db.WithContext(ctx), scope, id)
	if err != nil {
		return core.Memory{}, failure(err, "memory", id)
	}
	return row.Core()
}

func takeMemory(db *gorm.DB, scope core.Scope, id core.MemoryID) (models.Memory, error) {
	var row models.Memory
	err := db.Select(withoutVector).Scopes(visible(scope)).Where("id = ?", id).Take(&row).Error
	return row, err
}

// Found returns those of the memories that are in the scope, in no order, without
// their vectors.
func (r *Memories) Found(ctx context.Context, scope core.Scope, ids []core.MemoryID) ([]core.Memory, error) {
	var rows []models.Memory
	err := r.db.WithContext(ctx).Select(withoutVector).Scopes(visible(scope)).Where("id IN ?", ids).Find(&rows).Error
	if err != nil {
		return nil, failure(err, "memories of", scope.Owner)
	}
	return values(rows, models.Memory.Core)
}

// List returns the memories in the scope, the newest first, without their vectors.
func (r *Memories) List(ctx context.Context, scope core.Scope, q core.PageQuery) (core.Page[core.Memory], error) {
	none := core.Page[core.Memory]{}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "memories")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Select(withoutVector).Scopes(visible(scope))
	if more {
		db = db.Where("(created_at, id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	var rows []models.Memory
	if err := db.Order("created_at DESC, id DESC").Limit(limit + 1).Find(&rows).Error; err != nil {
		return none, failure(err, "memories of", scope.Owner)
	}
	return page(rows, limit, models.Memory.Core, func(m models.Memory) position {
		return position{List: "memories", N: m.CreatedAt.UnixMicro(), ID: m.ID}
	})
}

// Update replaces content, metadata and vector of the memory that m names by its
// id, and returns it. Without a vector in m the stored one stays if the content is
// the same, and goes if it is another.
func (r *Memories) Update(ctx context.Context, scope core.Scope, m core.Memory) (core.Memory, error) {
	if err := known("memory", m.ID); err != nil {
		return core.Memory{}, err
	}
	if err := checkMetadata(m.Metadata); err != nil {
		return core.Memory{}, err
	}
	var row models.Memory
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		revision, err := nextRevision(tx, scope.Owner)
		if err != nil {
			return err
		}
		// The revision's row is held: nobody else writes this one.
		if row, err = takeMemory(tx, scope, m.ID); err != nil {
			return err
		}
		changes := memoryChanges(&row, m, revision)
		if changes, err = checked(changes); err != nil {
			return err
		}
		return tx.Model(&models.Memory{}).Where("id = ?", m.ID).UpdateColumns(changes).Error
	})
	if err != nil {
		return core.Memory{}, failure(err, "memory", m.ID)
	}
	return row.Core()
}

// memoryChanges puts m into the row and returns the columns that change.
func memoryChanges(row *models.Memory, m core.Memory, revision int64) map[string]any {
	wanted := models.MemoryFrom(m)
	changes := map[string]any{
		"content": wanted.Content, "metadata": wanted.Metadata, "revision": revision, "updated_at": core.Now(),
	}
	if len(m.Embedding) > 0 || wanted.Content != row.Content {
		row.EmbeddingModel, row.Dimension = wanted.EmbeddingModel, wanted.Dimension
		if len(m.Embedding) == 0 {
			row.EmbeddingModel = ""
		}
		changes["embedding"], changes["embedding_model"], changes["dimension"] = wanted.Embedding, row.EmbeddingModel, row.Dimension
	}
	row.Content, row.Metadata, row.Revision = wanted.Content, wanted.Metadata, revision
	row.UpdatedAt, _ = changes["updated_at"].(time.Time)
	return changes
}

// keptDeletions is how many revisions back a deletion is remembered.
const keptDeletions = 10_000

// Delete removes the memory for good.
func (r *Memories) Delete(ctx context.Context, scope core.Scope, id core.MemoryID) error {
	if err := known("memory", id); err != nil {
		return err
	}
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		revision, err := nextRevision(tx, scope.Owner)
		if err != nil {
			return err
		}
		res := tx.Scopes(visible(scope)).Where("id = ?", id).Delete(&models.Memory{})
		if res.Error != nil {
			return res.Error
		}
		if res.RowsAffected == 0 {
			return notFound("memory", id)
		}
		old := tx.Where("owner = ? AND revision < ?", scope.Owner, revision-keptDeletions)
		if err := old.Delete(&models.MemoryDeletion{}).Error; err != nil {
			return err
		}
		return insert(tx, &models.MemoryDeletion{Owner: scope.Owner, MemoryID: string(id), Revision: revision})
	})
	return failure(err, "memory", id)
}
