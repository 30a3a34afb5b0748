package repositories

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Blobs stores images and files. Safe for concurrent use.
//
// The content is stored once for each owner. A blob is that content under one name,
// uploaded by one user; messages refer to it from the moment they are accepted
// (sessionTx.linkBlobs). A sweep removes unreferenced blobs.
type Blobs struct{ db *gorm.DB }

// NewBlobs returns the blobs in db.
func NewBlobs(db *gorm.DB) *Blobs { return &Blobs{db: db} }

// blobEntry is what a blob counts besides its content, which bounds the number of names for
// one content.
const blobEntry = 1 << 10

// Put stores the content under the blob's name and returns the blob as stored. The same
// content of the same user under the same name is the existing blob, which then counts as
// newly uploaded. ErrTooLarge when there is no room for it.
func (r *Blobs) Put(ctx context.Context, b core.Blob, content core.BlobContent, room core.BlobRoom) (core.Blob, error) {
	b.ID, b.CreatedAt = core.NewID[core.BlobID](), core.Now()
	var stored models.Blob
	err := commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) {
		if err := lockBlobs(tx, b.Owner); err != nil {
			return "", err
		}
		same, err := findFirst[models.Blob](tx.Where("owner = ? AND user_id = ? AND sha256 = ? AND name = ?", b.Owner, b.UserID, b.SHA256, b.Name))
		if err != nil {
			return "", err
		}
		if same != nil {
			stored, err = refreshBlob(tx, *same, b)
			return string(stored.ID), errors.Join(err, insertBlobText(tx, b, content.Text))
		}
		stored = models.Blob{Blob: b, UploadedAt: b.CreatedAt, Unreferenced: true}
		if err := insertBlob(tx, stored, content, room); err != nil {
			return "", err
		}
		return string(stored.ID), insertBlobText(tx, b, content.Text)
	}, func(id string) (err error) {
		stored.Blob, err = r.Get(ctx, core.Tenant{Owner: b.Owner, User: b.UserID}, core.BlobID(id))
		return err
	})
	return stored.Core(), wrapError(err, "blob", b.ID)
}

func refreshBlob(tx *gorm.DB, row models.Blob, b core.Blob) (models.Blob, error) {
	if row.SessionID != b.SessionID {
		row.SessionID = "" // several sessions
	}
	changes := map[string]any{"session_id": models.Ref(row.SessionID), "uploaded_at": b.CreatedAt}
	if b.Extracted && !row.Extracted { // stored before texts were extracted
		row.Extracted, row.Pages, row.Blank, row.Tokens = true, b.Pages, b.Blank, b.Tokens
		changes["extracted"], changes["pages"], changes["blank_pages"], changes["token_count"] = true, b.Pages, b.Blank, b.Tokens
	}
	err := tx.Model(&models.Blob{}).Where("id = ?", row.ID).UpdateColumns(changes).Error
	return row, err
}

// insertBlobText stores the text of a document whose content is stored, unless it exists:
// it never changes.
func insertBlobText(tx *gorm.DB, b core.Blob, text core.DocumentText) error {
	if !b.Extracted {
		return nil
	}
	row := models.BlobText{Owner: b.Owner, Sha256: b.SHA256, Pages: text.Pages, BlankPages: text.Blank, CreatedAt: b.CreatedAt, Text: text.Text}
	return tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error
}

// Text returns the text of a document of the owner by the hash of its content; ok is false
// if there is none.
func (r *Blobs) Text(ctx context.Context, owner, sha256 string) (text core.DocumentText, ok bool, err error) {
	row, err := findFirst[models.BlobText](r.db.WithContext(ctx).Where("owner = ? AND sha256 = ?", owner, sha256))
	if err != nil || row == nil {
		return text, false, wrapError(err, "text of blob", sha256)
	}
	return core.DocumentText{Text: row.Text, Pages: row.Pages, Blank: row.BlankPages}, true, nil
}

// insertBlob inserts a blob, and its content if the owner does not have it yet.
func insertBlob(tx *gorm.DB, row models.Blob, content core.BlobContent, room core.BlobRoom) error {
	if room.User > 0 {
		used, err := usedRoom(tx, row.Owner, row.UserID)
		if err == nil && used+row.Size+blobEntry > room.User {
			err = noRoomError(used, room.User, row.Size)
		}
		if err != nil {
			return err
		}
	}
	contents, err := count(tx.Model(&models.BlobContent{}).Where("owner = ? AND sha256 = ?", row.Owner, row.SHA256))
	if err != nil {
		return err
	}
	used, err := usedRoom(tx, row.Owner, "")
	if err != nil {
		return err
	}
	stored := row.Size + int64(len(content.Text.Text))
	more := stored
	if contents > 0 {
		more = 0
	}
	if used+more+blobEntry > room.Owner {
		return noRoomError(used, room.Owner, stored)
	}
	if contents == 0 {
		row := models.BlobContent{Owner: row.Owner, Sha256: row.SHA256, Size: stored, CreatedAt: row.CreatedAt, Data: content.Data}
		if err := commit.Insert(tx, &row); err != nil {
			return err
		}
	}
	if err := commit.Insert(tx, &row); err != nil {
		return err
	}
	return countBlobs(tx, row.Owner, core.SweptBlobs{Blobs: 1, Bytes: more}, []models.Blob{row}, 1)
}

// usedRoom returns how many bytes the blobs of an owner, or of one of the owner's users,
// count.
func usedRoom(tx *gorm.DB, owner, user string) (int64, error) {
	var has models.BlobTotal
	err := tx.Where("owner = ? AND by_user = ? AND user_id = ?", owner, user != "", user).Limit(1).Find(&has).Error
	return has.Bytes + has.Blobs*blobEntry, err
}

// countBlobs adds blobs to the totals of their owner and users, or with times -1 subtracts
// them. The caller holds the owner's lock.
func countBlobs(tx *gorm.DB, owner string, all core.SweptBlobs, blobs []models.Blob, times int64) error {
	totals := map[string]models.BlobTotal{"": {Owner: owner, Bytes: times * all.Bytes, Blobs: times * int64(all.Blobs)}}
	for _, b := range blobs {
		if b.UserID != "" {
			t := totals[b.UserID]
			totals[b.UserID] = models.BlobTotal{Owner: owner, ByUser: true, UserID: b.UserID, Bytes: t.Bytes + times*b.Size, Blobs: t.Blobs + times}
		}
	}
	rows := slices.Collect(maps.Values(totals))
	key := []clause.Column{{Name: "owner"}, {Name: "by_user"}, {Name: "user_id"}}
	add := clause.Set{
		{Column: clause.Column{Name: "bytes"}, Value: gorm.Expr("blob_totals.bytes + excluded.bytes")},
		{Column: clause.Column{Name: "blobs"}, Value: gorm.Expr("blob_totals.blobs + excluded.blobs")},
	}
	if err := tx.Clauses(clause.OnConflict{Columns: key, DoUpdates: add}).Create(&rows).Error; err != nil {
		return err
	}
	return tx.Where("owner = ? AND by_user AND user_id IN ? AND blobs <= 0", owner, slices.Collect(maps.Keys(totals))).Delete(&models.BlobTotal{}).Error
}

func noRoomError(used, maxBytes, more int64) error {
	return core.Errorf(core.ErrTooLarge, "your files use %s of %s, so there is no room for %s more: delete messages with files",
		core.ByteSize(used), core.ByteSize(maxBytes), core.ByteSize(more))
}

// lockBlobs serializes changes to the owner's blobs. SQLite serializes all transactions
// anyway.
func lockBlobs(tx *gorm.DB, owner string) error {
	if !isPostgres(tx) {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended('blobs ' || ?, 0))", owner).Error
}

// Get returns one blob.
func (r *Blobs) Get(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, error) {
	return takeBlob(byID(ctx, r.db, "blob", id).Where(inScope(tenant)), id)
}

func takeBlob(db *gorm.DB, id core.BlobID) (core.Blob, error) {
	row, err := takeRow[models.Blob](db.Where("id = ?", id), "blob", id)
	return row.Core(), err
}

// Open returns one blob with its content.
func (r *Blobs) Open(ctx context.Context, tenant core.Tenant, id core.BlobID) (core.Blob, []byte, error) {
	b, err := r.Get(ctx, tenant, id)
	if err != nil {
		return core.Blob{}, nil, err
	}
	content, err := takeRow[models.BlobContent](r.db.WithContext(ctx).Where("owner = ? AND sha256 = ?", b.Owner, b.SHA256), "blob", id)
	return b, content.Data, err
}

// Contents returns the contents of the blobs that exist.
func (r *Blobs) Contents(ctx context.Context, tenant core.Tenant, ids []core.BlobID) (map[core.BlobID][]byte, error) {
	return r.loadColumn(ctx, tenant, ids, "blob_contents", "data")
}

// Texts returns the extracted texts of the blobs that have one.
func (r *Blobs) Texts(ctx context.Context, tenant core.Tenant, ids []core.BlobID) (map[core.BlobID][]byte, error) {
	return r.loadColumn(ctx, tenant, ids, "blob_texts", "text")
}

// loadColumn returns a column that blobs with the same content share.
func (r *Blobs) loadColumn(ctx context.Context, tenant core.Tenant, ids []core.BlobID, table, column string) (map[core.BlobID][]byte, error) {
	valid := slices.DeleteFunc(slices.Clone(ids), func(id core.BlobID) bool { return requireID("blob", id) != nil })
	var rows []struct {
		ID   models.Ref
		Data []byte
	}
	query := r.db.WithContext(ctx).Table("blobs").Select("blobs.id, c."+column+" AS data").
		Joins("JOIN "+table+" c ON c.owner = blobs.owner AND c.sha256 = blobs.sha256").
		Where("blobs.owner = ? AND blobs.id IN ?", tenant.Owner, valid)
	if tenant.User != "" {
		query = query.Where("blobs.user_id = ?", tenant.User)
	}
	if err := query.Scan(&rows).Error; err != nil {
		return nil, wrapError(err, "contents of", tenant.Owner)
	}
	out := make(map[core.BlobID][]byte, len(rows))
	for _, row := range rows {
		out[core.BlobID(row.ID)] = row.Data
	}
	return out, nil
}

// List returns the files in the scope, the newest first: for a session those that its
// messages refer to and those that were uploaded for it.
func (r *Blobs) List(ctx context.Context, tenant core.Tenant, q core.BlobQuery) (core.Page[core.Blob], error) {
	db := r.db.WithContext(ctx).Where(inScope(tenant))
	if q.SessionID != "" {
		db = db.Where("id IN (SELECT blob_id FROM blob_references WHERE session_id = @s UNION SELECT id FROM blobs WHERE session_id = @s)", map[string]any{"s": q.SessionID})
	}
	page, err := findPage(db, keyset[models.Blob]{list: "blobs", column: "created_at"}, q.PageQuery, longColumns{}, func(b models.Blob) position { return createdAt(b.CreatedAt, b.ID) })
	return core.Page[core.Blob]{Items: mapRows(page.Items, models.Blob.Core), NextCursor: page.NextCursor}, err
}

// Find returns a file of any owner.
func (r *Blobs) Find(ctx context.Context, id core.BlobID) (core.Blob, error) {
	return takeBlob(byID(ctx, r.db, "blob", id), id)
}

// Delete removes a file even if messages refer to it: these keep its name and show that it
// is no longer stored.
func (r *Blobs) Delete(ctx context.Context, tenant core.Tenant, id core.BlobID) error {
	return wrapError(inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := lockBlobs(tx, tenant.Owner); err != nil {
			return err
		}
		if _, err := takeBlob(byID(ctx, tx, "blob", id).Where(inScope(tenant)), id); err != nil {
			return err
		}
		if err := tx.Where("blob_id = ?", id).Delete(&models.BlobReference{}).Error; err != nil {
			return err
		}
		_, err := removeBlobs(tx, tenant.Owner, []models.Ref{models.Ref(id)})
		return err
	}), "blob", id)
}

// signingKeyBytes is the length of a key for HMAC-SHA256.
const signingKeyBytes = 32

// SigningKey returns the key that signs links to files, shared by all processes. The first
// caller creates it.
func (r *Blobs) SigningKey(ctx context.Context) ([]byte, error) {
	const purpose = "files"
	row := models.SigningKey{Purpose: purpose, CreatedAt: core.Now(), Secret: make([]byte, signingKeyBytes)}
	_, _ = rand.Read(row.Secret) // never fails
	var stored models.SigningKey
	find := func() error { return r.db.WithContext(ctx).Where("purpose = ?", purpose).Limit(1).Find(&stored).Error }
	err := find()
	if err == nil && len(stored.Secret) == 0 {
		if err = r.db.WithContext(ctx).Clauses(clause.OnConflict{DoNothing: true}).Create(&row).Error; err == nil {
			err = find()
		}
	}
	return stored.Secret, wrapError(err, "signing key", purpose)
}
