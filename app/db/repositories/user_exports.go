package repositories

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// filesSQL selects the user's own files and those that messages of the user's sessions
// refer to, or that were uploaded for these: the files that a purge of the user considers.
const filesSQL = "SELECT id FROM blobs WHERE owner = @owner AND user_id = @user" +
	" UNION SELECT blob_id FROM blob_references WHERE session_id IN (" + userSessionsSQL + ")" +
	" UNION SELECT id FROM blobs WHERE session_id IN (" + userSessionsSQL + ")"

// Files returns up to limit files after that id ("" = from the first one).
func (r *Purges) Files(ctx context.Context, owner, user string, after core.BlobID, limit int) ([]core.Blob, error) {
	db := r.db.WithContext(ctx).Where("owner = @owner AND id IN ("+filesSQL+")", userParams(owner, user))
	if after != "" {
		db = db.Where("id > ?", after)
	}
	list, err := findAll(db.Order("id").Limit(limit), models.Blob.Core)
	return list, wrapError(err, "files of user", user)
}

// Elsewhere returns up to limit messages after that id ("" = from the first one) that the
// user wrote in sessions of others, with their revisions.
func (r *Purges) Elsewhere(ctx context.Context, owner, user string, after core.MessageID, limit int) ([]core.Message, error) {
	db := r.db.WithContext(ctx).Where(userMessagesSQL, userParams(owner, user)).Where("deleted_at IS NULL AND role = 'user'")
	if after != "" {
		db = db.Where("id > ?", after)
	}
	messages, err := findRows[core.Message](db.Order("id").Limit(limit))
	if err == nil {
		err = addRevisions(r.db.WithContext(ctx), messages)
	}
	return messages, wrapError(err, "messages of user", user)
}

// Keys returns the API keys of the owner, the oldest first.
func (r *Purges) Keys(ctx context.Context, owner string) ([]core.APIKey, error) {
	list, err := findAll(r.db.WithContext(ctx).Where("owner = ?", owner).Order("created_at, id"), models.APIKey.Core)
	return list, wrapError(err, "API keys of", owner)
}
