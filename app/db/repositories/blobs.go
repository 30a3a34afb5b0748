package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Blobs stores images and files. Safe for concurrent use.
//
// The content is stored once for each owner. A blob is that content under one name,
// brought by one user; messages refer to it from the moment in which they are
// accepted (journal.refer). What nothing refers to is swept.
type Blobs struct {
	db *gorm.DB
}

// NewBlobs returns the blobs in db.
func NewBlobs(db *gorm.DB) *Blobs { return &Blobs{db: db} }

// blobEntry is what a blob counts besides its content: also many names for one
// content come to an end.
const blobEntry = 1 << 10

// Put stores the content under the blob's name and returns the blob as it is
// stored. The same content of the same user under the same name is the blob of the
// first time, from now on as young as a new one. ErrTooLarge when there is
// no room for it.
func (r *Blobs) Put(ctx context.Context, b core.Blob, data []byte, room core.BlobRoom) (core.Blob, error) {
	b.ID, b.CreatedAt = core.NewID[core.BlobID](), core.Now()
	var stored models.Blob
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if err := lockBlobs(tx, b.Owner); err != nil {
			return err
		}
		var same []models.Blob
		err = tx.Where("owner = ? AND user_id = ? AND sha256 = ? AND name = ?", b.Owner, b.UserID, b.SHA256, b.Name).Limit(1).Find(&same).Error
		if err != nil {
			return err
		}
		if len(same) > 0 {
			stored, err = again(tx, same[0], b)
			return err
		}
		stored = models.BlobFrom(b)
		return put(tx, stored, data, room)
	})
	if err != nil {
		return core.Blob{}, failure(err, "blob", b.ID)
	}
	return stored.Core()
}

// again notes that a blob was uploaded once more.
func again(tx *gorm.DB, row models.Blob, b core.Blob) (models.Blob, error) {
	if row.SessionID != models.Ref(b.SessionID) {
		row.SessionID = "" // for more than one
	}
	err := tx.Model(&models.Blob{}).Where("id = ?", row.ID).
		UpdateColumns(map[string]any{"session_id": row.SessionID, "uploaded_at": b.CreatedAt}).Error
	return row, err
}

// put inserts a blob, and its content if the owner does not have it.
func put(tx *gorm.DB, row models.Blob, data []byte, room core.BlobRoom) error {
	if err := fitUser(tx, row, room.User); err != nil {
		return err
	}
	var has struct {
		Bytes   int64
		Blobs   int64
		Content bool
	}
	err := tx.Raw(`SELECT
		(SELECT COALESCE(SUM(size), 0) FROM blob_contents WHERE owner = @o) AS bytes,
		(SELECT COUNT(*) FROM blobs WHERE owner = @o) AS blobs,
		EXISTS (SELECT 1 FROM blob_contents WHERE owner = @o AND sha256 = @h) AS content`,
		map[string]any{"o": row.Owner, "h": row.Sha256}).Scan(&has).Error
	if err != nil {
		return err
	}
	more := int64(blobEntry)
	if !has.Content {
		more += row.Size
	}
	if used := has.Bytes + has.Blobs*blobEntry; used+more > room.Owner {
		return noRoom(used, room.Owner, row.Size)
	}
	if !has.Content {
		content := models.BlobContent{Owner: row.Owner, Sha256: row.Sha256, Size: row.Size, CreatedAt: row.CreatedAt, Data: data}
		if err := insert(tx, &content); err != nil {
			return err
		}
	}
	return insert(tx, &row)
}

// fitUser returns ErrTooLarge if the user would have more than that many bytes, of which
// each file counts; 0 = any number.
func fitUser(tx *gorm.DB, row models.Blob, most int64) error {
	if most <= 0 {
		return nil
	}
	var has struct{ Bytes, Blobs int64 }
	err := tx.Raw("SELECT COALESCE(SUM(size), 0) AS bytes, COUNT(*) AS blobs FROM blobs WHERE owner = ? AND user_id = ?", row.Owner, row.UserID).Scan(&has).Error
	if err != nil {
		return err
	}
	if used := has.Bytes + has.Blobs*blobEntry; used+row.Size+blobEntry > most {
		return noRoom(used, most, row.Size)
	}
	return nil
}

func noRoom(used, most, more int64) error {
	return core.Errorf(core.ErrTooLarge, "your files take %s of %s, so there is no room for %s more: delete messages that have some",
		core.ByteSize(used), core.ByteSize(most), core.ByteSize(more))
}

// lockBlobs makes those who add to the owner's blobs or take from them do so one
// after the other. SQLite's transactions do anyway.
func lockBlobs(tx *gorm.DB, owner string) error {
	if !isPostgres(tx) {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended('blobs ' || ?, 0))", owner).Error
}

// Get returns one blob.
func (r *Blobs) Get(ctx context.Context, scope core.Scope, id core.BlobID) (core.Blob, error) {
	if err := known("blob", id); err != nil {
		return core.Blob{}, err
	}
	var row models.Blob
	if err := r.db.WithContext(ctx).Scopes(visible(scope)).Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Blob{}, failure(err, "blob", id)
	}
	return row.Core()
}

// Open returns one blob with its content.
func (r *Blobs) Open(ctx context.Context, scope core.Scope, id core.BlobID) (core.Blob, []byte, error) {
	b, err := r.Get(ctx, scope, id)
	if err != nil {
		return core.Blob{}, nil, err
	}
	var content models.BlobContent
	if err := r.db.WithContext(ctx).Where("owner = ? AND sha256 = ?", b.Owner, b.SHA256).Take(&content).Error; err != nil {
		return core.Blob{}, nil, failure(err, "blob", id)
	}
	return b, content.Data, nil
}

// Contents returns the content of each of the blobs that is there.
func (r *Blobs) Contents(ctx context.Context, scope core.Scope, ids []core.BlobID) (map[core.BlobID][]byte, error) {
	var valid []core.BlobID
	for _, id := range ids {
		if known("blob", id) == nil {
			valid = append(valid, id)
		}
	}
	if len(valid) == 0 {
		return nil, nil
	}
	var rows []struct {
		ID   models.Ref
		Data []byte
	}
	query := r.db.WithContext(ctx).Table("blobs").Select("blobs.id, c.data").
		Joins("JOIN blob_contents c ON c.owner = blobs.owner AND c.sha256 = blobs.sha256").
		Where("blobs.owner = ? AND blobs.id IN ?", scope.Owner, valid)
	if scope.User != "" {
		query = query.Where("blobs.user_id = ?", scope.User)
	}
	if err := query.Scan(&rows).Error; err != nil {
		return nil, failure(err, "blob", valid[0])
	}
	out := make(map[core.BlobID][]byte, len(rows))
	for _, row := range rows {
		out[core.BlobID(row.ID)] = row.Data
	}
	return out, nil
}
