package repositories

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// IdempotencyKeys stores the keys of requests that clients may repeat. Safe for concurrent
// use, by many replicas.
//
// A key is free, in progress, or answered. Of several concurrent requests with one key only
// one gets it (Begin); it must Finish or Release it. If its process dies, another request
// takes over the key after a while, and later writes of the former one are refused. Times
// are the database's.
//
// The transaction that executes the request also records its result in the row of the key
// (commitOnce). So it is certain whether a request was executed, whatever happened to its
// answer: Release frees no key with a result, and Begin returns it to the next request with
// the key, which only answers.
type IdempotencyKeys struct {
	db *gorm.DB
}

// NewIdempotencyKeys returns the keys in db.
func NewIdempotencyKeys(db *gorm.DB) *IdempotencyKeys { return &IdempotencyKeys{db: db} }

// maxBeginTries bounds how often a key may become free between two statements.
const maxBeginTries = 5

// While a key is in progress its request_hash holds the token of the request: the hash is
// known only when the whole body has been read.
const beginSQL = `INSERT INTO idempotency_keys (owner, key, target, request_hash, created_at, expires_at)
VALUES (@owner, @key, @target, @token, %[1]s, %[2]s)
ON CONFLICT (owner, key) DO UPDATE SET target = excluded.target, request_hash = excluded.request_hash,
	status = NULL, content_type = '', location = '', body = NULL, result = '', result_hash = '',
	created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE idempotency_keys.expires_at <= %[1]s
	OR (idempotency_keys.status IS NULL AND idempotency_keys.result = '' AND idempotency_keys.created_at <= %[3]s)`

// Begin acquires the key for the request. It returns nil if the key was free, or the state
// of the request that has it. With a Result, that request was executed and not answered:
// the key is acquired to send the answer only.
func (r *IdempotencyKeys) Begin(ctx context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error) {
	db := r.db.WithContext(ctx)
	take := fmt.Sprintf(beginSQL, clockSQL(db, 0), clockSQL(db, in.Keep), clockSQL(db, -in.Work))
	for range maxBeginTries {
		res := db.Exec(take, map[string]any{"owner": in.Owner, "key": in.Key, "target": in.Target, "token": in.Token})
		if res.Error != nil {
			return nil, wrapError(res.Error, "idempotency key", in.Key)
		}
		if res.RowsAffected > 0 {
			return nil, nil
		}
		var rows []models.IdempotencyKey
		err := db.Where("owner = ? AND key = ?", in.Owner, in.Key).Limit(1).Find(&rows).Error
		if err != nil {
			return nil, wrapError(err, "idempotency key", in.Key)
		}
		if len(rows) == 0 {
			continue
		}
		answer := rows[0].Core()
		if answer.Result == nil || answer.Target != in.Target {
			return &answer, nil
		}
		res = db.Model(&models.IdempotencyKey{}).Where("owner = ? AND key = ? AND status IS NULL AND result = ?", in.Owner, in.Key, answer.Result.Name).
			UpdateColumn("request_hash", in.Token)
		if res.Error != nil {
			return nil, wrapError(res.Error, "idempotency key", in.Key)
		}
		if res.RowsAffected > 0 {
			return &answer, nil
		}
	}
	return nil, core.Errorf(core.ErrUnavailable, "too many concurrent requests use this idempotency key; try again in a moment")
}

// Finish stores the answer of the request that holds the key, without its body if that
// contains something that was removed meanwhile. It changes nothing if the key was taken
// over.
func (r *IdempotencyKeys) Finish(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) error {
	err := retryDelays(func() error {
		return inTx(ctx, r.db, func(tx *gorm.DB) error { return storeAnswer(tx, in, a) })
	})
	return wrapError(err, "idempotency key", in.Key)
}

// storeAnswer is Finish in a transaction.
func storeAnswer(tx *gorm.DB, in core.KeyedRequest, a core.KeyedAnswer) error {
	outdated, err := isOutdated(tx, in.Target, a)
	if err != nil {
		return err
	}
	a.Kept = a.Kept && !outdated
	changes := map[string]any{
		"request_hash": a.RequestHash, "status": a.Status, "content_type": a.ContentType, "location": a.Location, "body": nil,
	}
	if a.Kept {
		changes["body"] = append([]byte{}, a.Body...) // never nil
	}
	res := tx.Model(&models.IdempotencyKey{}).Scopes(keyInProgress(in)).UpdateColumns(changes)
	if res.Error != nil || res.RowsAffected == 0 {
		return res.Error
	}
	return storeMentions(tx, in, mentionsOf(in.Target, a))
}

// Release frees the key unless its request has committed a result. If a transaction is
// about to commit one, Release waits for it. It changes nothing if the key was taken over.
func (r *IdempotencyKeys) Release(ctx context.Context, in core.KeyedRequest) error {
	err := r.db.WithContext(ctx).Scopes(keyInProgress(in)).Where("result = ''").Delete(&models.IdempotencyKey{}).Error
	return wrapError(err, "idempotency key", in.Key)
}

// keyInProgress narrows a query to the key while the request holds it.
func keyInProgress(in core.KeyedRequest) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return db.Where("owner = ? AND key = ? AND status IS NULL AND request_hash = ?", in.Owner, in.Key, in.Token)
	}
}

const sweepSQL = `DELETE FROM idempotency_keys WHERE (owner, key) IN (
	SELECT owner, key FROM idempotency_keys WHERE expires_at <= %s ORDER BY expires_at LIMIT %d)`

// Sweep deletes up to limit expired keys and returns how many there were.
func (r *IdempotencyKeys) Sweep(ctx context.Context, limit int) (int, error) {
	db := r.db.WithContext(ctx)
	res := db.Exec(fmt.Sprintf(sweepSQL, clockBoundSQL(db, 0), limit))
	if res.Error != nil {
		return 0, fmt.Errorf("sweep idempotency keys: %w", res.Error)
	}
	return int(res.RowsAffected), nil
}
