package repositories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
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
type IdempotencyKeys struct{ db *gorm.DB }

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
// of the request that has it; ErrInvalid if a message of the session of the path has it. With a Result, that request was executed and its answer is not stored:
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
			err := checkMessages(db, in)
			if err != nil {
				err = errors.Join(wrapError(err, "idempotency key", in.Key), r.Release(ctx, in))
			}
			return nil, err
		}
		rows, err := findRows[models.IdempotencyKey](db.Where("owner = ? AND key = ?", in.Owner, in.Key).Limit(1))
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
		res = db.Model(&models.IdempotencyKey{}).Where("owner = ? AND key = ? AND body IS NULL AND result = ?", in.Owner, in.Key, answer.Result.Name).
			UpdateColumns(map[string]any{"request_hash": in.Token, "status": nil})
		if res.Error != nil {
			return nil, wrapError(res.Error, "idempotency key", in.Key)
		}
		if res.RowsAffected > 0 {
			return &answer, nil
		}
	}
	return nil, core.Errorf(core.ErrUnavailable, "too many concurrent requests use this idempotency key; try again in a moment")
}

// checkMessages returns core.KeyReused if the key came with a message of the session in the path.
func checkMessages(db *gorm.DB, in core.KeyedRequest) error {
	var used []int
	for _, session := range idsIn(sessionPath, in.Target) {
		err := db.Raw("SELECT 1 FROM runs WHERE session_id = @s AND owner = @owner AND client_message_id = @key UNION SELECT 1 FROM messages WHERE session_id = @s AND owner = @owner AND client_message_id = @key",
			map[string]any{"owner": in.Owner, "s": session, "key": in.Sent}).Scan(&used).Error
		if err != nil {
			return err
		}
	}
	if len(used) > 0 {
		return core.KeyReused("a message of the session")
	}
	return nil
}

// Check returns core.KeyReused if a request with another target has the key.
func (r *IdempotencyKeys) Check(ctx context.Context, in core.KeyedRequest) error {
	targets, err := scan[[]string](r.db.WithContext(ctx).Model(&models.IdempotencyKey{}).Where("owner = ? AND key = ? AND target <> ? AND expires_at > "+clockSQL(r.db, 0), in.Owner, in.Key, in.Target).Select("target"))
	if err == nil && len(targets) > 0 {
		return core.KeyReused(targets[0])
	}
	return wrapError(err, "idempotency key", in.Key)
}

// Finish stores the answer of the request that holds the key, without its body if that
// contains something that was removed meanwhile. It changes nothing if the key was taken
// over, or if an answer that is not kept has a committed result: a repetition answers by that.
func (r *IdempotencyKeys) Finish(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) error {
	held := keyInProgress(in)
	if !a.Kept {
		held = gorm.Expr("? AND result = ''", held)
	}
	err := retryTx(func() error {
		return inTx(ctx, r.db, func(tx *gorm.DB) error {
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
			res := tx.Model(&models.IdempotencyKey{}).Where(held).UpdateColumns(changes)
			if res.Error != nil || res.RowsAffected == 0 {
				return res.Error
			}
			return storeMentions(tx, in, mentionsOf(in.Target, a))
		})
	})
	return wrapError(err, "idempotency key", in.Key)
}

// Release frees the key unless its request has committed a result. If a transaction is
// about to commit one, Release waits for it. It changes nothing if the key was taken over.
func (r *IdempotencyKeys) Release(ctx context.Context, in core.KeyedRequest) error {
	err := r.db.WithContext(ctx).Where(keyInProgress(in)).Where("result = ''").Delete(&models.IdempotencyKey{}).Error
	return wrapError(err, "idempotency key", in.Key)
}

func keyInProgress(in core.KeyedRequest) clause.Expr {
	return gorm.Expr("owner = ? AND key = ? AND status IS NULL AND request_hash = ?", in.Owner, in.Key, in.Token)
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

// Rows of idempotency_mentions list the ids in stored answers, so that a deletion finds
// these without reading all answers.

const idPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

var (
	anyID        = regexp.MustCompile(idPattern)
	anyUser      = regexp.MustCompile(`"(?:user|author)_id":("(?:[^"\\]|\\.)*")`)
	ownID        = regexp.MustCompile(`"(?:id|user_message_id|answer_id)":"(` + idPattern + `)"`)
	sessionPath  = regexp.MustCompile(`/(?:sessions/|conversations/conv_)(` + idPattern + `)`)
	memoriesPath = regexp.MustCompile(`/memories/(` + idPattern + `)`)
)

func mentionOfUser(user string) string { return "user " + user }

// mentionsOf returns all mentions in a request and its answer, each once.
func mentionsOf(target string, a core.KeyedAnswer) []string {
	texts := [][]byte{[]byte(target), []byte(a.Location)}
	if a.Kept {
		texts = append(texts, a.Body)
	}
	var all []string
	for _, text := range texts {
		for _, id := range anyID.FindAll(text, -1) {
			all = append(all, string(id))
		}
		for _, found := range anyUser.FindAllSubmatch(text, -1) {
			var user string
			if json.Unmarshal(found[1], &user) == nil && user != "" {
				all = append(all, mentionOfUser(user))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func storeMentions(tx *gorm.DB, in core.KeyedRequest, mentions []string) error {
	if err := tx.Where("owner = ? AND key = ?", in.Owner, in.Key).Delete(&models.IdempotencyMention{}).Error; err != nil {
		return err
	}
	for part := range slices.Chunk(mentions, maxIDs) {
		rows := make([]models.IdempotencyMention, 0, len(part))
		for _, m := range part {
			rows = append(rows, models.IdempotencyMention{Mention: m, Owner: in.Owner, Key: in.Key})
		}
		if err := commit.Insert(tx, &rows); err != nil {
			return err
		}
	}
	return nil
}

// isOutdated reports whether something in the answer was removed since. What the answer
// contains is locked against removal until the transaction ends, so that a later removal
// finds the answer.
func isOutdated(tx *gorm.DB, target string, a core.KeyedAnswer) (bool, error) {
	var body struct {
		SessionID string `json:"session_id"`
		Run       struct {
			SessionID string `json:"session_id"`
		} `json:"run"`
	}
	_ = json.Unmarshal(a.Body, &body) // other answers have none
	paths := target + " " + a.Location
	sessions := idsIn(sessionPath, paths)
	for _, id := range []string{body.SessionID, body.Run.SessionID} {
		if core.ValidID(id) {
			sessions = append(sessions, id)
		}
	}
	for table, ids := range map[string][]string{"sessions": sessions, "memories": idsIn(memoriesPath, paths)} {
		all := tx.Table(table)
		if table == "sessions" {
			all = all.Where(visibleSQL)
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 0 {
			continue
		}
		there, err := scan[[]string](all.Scopes(withRowLock(table, clause.LockingStrengthShare)).Select("id").Where("id IN ?", ids).Order("id"))
		if err != nil || len(there) != len(ids) {
			return true, err
		}
	}
	for part := range slices.Chunk(idsIn(ownID, string(a.Body)), maxIDs) {
		deleted, err := count(tx.Model(&core.Message{}).Where("id IN ? AND deleted_at IS NOT NULL", part))
		if err != nil || deleted > 0 {
			return deleted > 0, err
		}
	}
	return false, nil
}

func idsIn(pattern *regexp.Regexp, text string) []string {
	var ids []string
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// eraseAnswers clears the owner's stored answers that mention one of the ids. Whatever removes or changes something
// calls it afterwards in its transaction.
func eraseAnswers[T ~string](tx *gorm.DB, owner string, ids []T) error {
	for part := range slices.Chunk(ids, maxIDs) {
		err := tx.Model(&models.IdempotencyKey{}).
			Where("owner = ? AND key IN (SELECT key FROM idempotency_mentions WHERE owner = ? AND mention IN ?) AND body IS NOT NULL", owner, owner, part).
			UpdateColumn("body", nil).Error
		if err != nil {
			return err
		}
	}
	return nil
}
