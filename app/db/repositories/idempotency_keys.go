package repositories

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// IdempotencyKeys remembers requests that may come again. Safe for concurrent use,
// by many replicas.
//
// A key is free, being worked on, or answered. Of any number of requests with one
// key that come at once one gets it (Begin) and must Finish or Release it. One that
// does neither, because its process died, is taken over after a while; what it does
// afterwards changes nothing. Times are the database's.
type IdempotencyKeys struct {
	db *gorm.DB
}

// NewIdempotencyKeys returns the keys in db.
func NewIdempotencyKeys(db *gorm.DB) *IdempotencyKeys { return &IdempotencyKeys{db: db} }

// beginTries bounds how often a key may become free between two statements.
const beginTries = 5

// While a key is being worked on its request_hash holds the token of who works:
// the hash is known only when the whole body was read.
const beginSQL = `INSERT INTO idempotency_keys (owner, key, target, request_hash, created_at, expires_at)
VALUES (@owner, @key, @target, @token, %[1]s, %[2]s)
ON CONFLICT (owner, key) DO UPDATE SET target = excluded.target, request_hash = excluded.request_hash,
	status = NULL, content_type = '', location = '', body = NULL, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= %[1]s OR (idempotency_keys.status IS NULL AND idempotency_keys.created_at <= %[3]s)`

// Begin takes the key for the request. It returns nil if the key was free, or what
// is known of the request that has it.
func (r *IdempotencyKeys) Begin(ctx context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error) {
	if !storableText(in.Key) || !storableText(in.Target) {
		return nil, core.Errorf(core.ErrInvalid, unstorable)
	}
	db := r.db.WithContext(ctx)
	take := fmt.Sprintf(beginSQL, clockSQL(db, 0), clockSQL(db, in.Keep), clockSQL(db, -in.Work))
	for range beginTries {
		res := db.Exec(take, map[string]any{"owner": in.Owner, "key": in.Key, "target": in.Target, "token": in.Token})
		if res.Error != nil {
			return nil, failure(res.Error, "idempotency key", in.Key)
		}
		if res.RowsAffected > 0 {
			return nil, nil
		}
		var rows []models.IdempotencyKey
		err := db.Where("owner = ? AND key = ?", in.Owner, in.Key).Limit(1).Find(&rows).Error
		if err != nil {
			return nil, failure(err, "idempotency key", in.Key)
		}
		if len(rows) > 0 {
			answer := rows[0].Core()
			return &answer, nil
		}
	}
	return nil, core.Errorf(core.ErrUnavailable, "the idempotency key is asked for too often at once; try again in a moment")
}

// Finish stores the answer of the request that holds the key. It changes nothing
// if the key was taken over.
func (r *IdempotencyKeys) Finish(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) error {
	changes := map[string]any{
		"request_hash": a.RequestHash, "status": a.Status, "content_type": a.ContentType, "location": a.Location, "body": nil,
	}
	if a.Kept {
		changes["body"] = append([]byte{}, a.Body...) // never nil
	}
	err := r.db.WithContext(ctx).Model(&models.IdempotencyKey{}).Scopes(held(in)).UpdateColumns(changes).Error
	return failure(err, "idempotency key", in.Key)
}

// Release frees a key whose request did nothing. It changes nothing if the key was
// taken over.
func (r *IdempotencyKeys) Release(ctx context.Context, in core.KeyedRequest) error {
	err := r.db.WithContext(ctx).Scopes(held(in)).Delete(&models.IdempotencyKey{}).Error
	return failure(err, "idempotency key", in.Key)
}

// held narrows a question to the key while the request works on it.
func held(in core.KeyedRequest) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("owner = ? AND key = ? AND status IS NULL AND request_hash = ?", in.Owner, in.Key, in.Token)
	}
}

const sweepSQL = `DELETE FROM idempotency_keys WHERE (owner, key) IN (
	SELECT owner, key FROM idempotency_keys WHERE expires_at <= %s ORDER BY expires_at LIMIT %d)`

// Sweep deletes up to limit keys that have expired and returns how many there were.
func (r *IdempotencyKeys) Sweep(ctx context.Context, limit int) (int, error) {
	db := r.db.WithContext(ctx)
	res := db.Exec(fmt.Sprintf(sweepSQL, clockSQL(db, 0), limit))
	if res.Error != nil {
		return 0, fmt.Errorf("sweep idempotency keys: %w", res.Error)
	}
	return int(res.RowsAffected), nil
}

// KeyLife is how long an idempotency key is known.
const KeyLife = 24 * time.Hour
