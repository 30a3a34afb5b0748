package repositories

import (
	"context"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// MessageVectors stores the vectors of messages. Safe for concurrent use.
type MessageVectors struct{ db *gorm.DB }

// NewMessageVectors returns the vectors in db.
func NewMessageVectors(db *gorm.DB) *MessageVectors { return &MessageVectors{db: db} }

// vectorLease is how long a worker embeds messages without claiming anew.
const vectorLease = 2 * time.Minute

// Claim makes the worker the one that embeds messages for two minutes, and begins anew for
// another space; false = another worker is at it.
func (r *MessageVectors) Claim(ctx context.Context, worker string, space core.VectorSpace) (claimed bool, err error) {
	const otherSpace = "(model <> @model OR @dimension > 0 AND dimension > 0 AND dimension <> @dimension)"
	free := " id = 1 AND (worker = @worker OR leased_until IS NULL OR leased_until < " + clockBoundSQL(r.db, 0) + ")"
	args := map[string]any{"worker": worker, "model": space.Model, "dimension": space.Dimension, "reader": models.ReaderVectors}
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		err := tx.Exec("UPDATE session_readers SET seq = 0, behind = true WHERE reader = @reader AND EXISTS (SELECT 1 FROM message_vector_work WHERE"+free+" AND "+otherSpace+")", args).Error
		if err != nil {
			return err
		}
		res := tx.Exec("UPDATE message_vector_work SET worker = @worker, model = @model, leased_until = "+clockSQL(r.db, vectorLease)+
			", dimension = CASE WHEN model <> @model OR @dimension > 0 THEN @dimension ELSE dimension END WHERE"+free, args)
		claimed = res.RowsAffected == 1
		return res.Error
	})
	return claimed, wrapError(err, "message vectors", "")
}

// behindVectorsSQL finds the newest session with messages to embed.
const behindVectorsSQL = `SELECT s.id, s.owner, s.last_seq, r.seq FROM session_readers r JOIN sessions s ON s.id = r.session_id
	WHERE r.behind AND r.reader = ? AND NOT s.temporary AND s.busy NOT IN ('fork', 'purge') AND r.owner NOT IN ? ORDER BY r.session_id DESC LIMIT 1`

// unembeddedSQL are the messages with a text of a person or a model and without a vector in the space.
const unembeddedSQL = `role IN ('user', 'assistant') AND content <> '' AND deleted_at IS NULL AND session_id = @session AND seq > @after AND seq <= @through
	AND NOT EXISTS (SELECT 1 FROM message_vectors v WHERE v.message_id = messages.id AND v.model = @model AND (@dimension = 0 OR v.dimension IN (0, @dimension)))`

// embeddedText is how many characters of a message are embedded: its beginning.
const embeddedText = 6_000

// Unembedded returns the next messages of a session without a vector in the space, in the order of
// the log, unless one of the owners has it. An empty SessionID = there are none.
func (r *MessageVectors) Unembedded(ctx context.Context, space core.VectorSpace, except []string, limit int) (core.Unembedded, error) {
	db := r.db.WithContext(ctx)
	for {
		var s struct {
			ID, Owner    string
			LastSeq, Seq int64
		}
		err := db.Raw(behindVectorsSQL, models.ReaderVectors, append(except, "")).Scan(&s).Error
		if err != nil || s.ID == "" {
			return core.Unembedded{}, wrapError(err, "message vectors", "")
		}
		next := core.Unembedded{SessionID: core.SessionID(s.ID), Owner: s.Owner, AfterSeq: s.Seq, ThroughSeq: s.LastSeq}
		err = db.Select("id, session_id, owner, seq, role, substr(content, 1, ?) AS content, created_at", embeddedText).Where(unembeddedSQL, map[string]any{
			"session": s.ID, "after": s.Seq, "through": s.LastSeq, "model": space.Model, "dimension": space.Dimension,
		}).Order("seq").Limit(limit).Find(&next.Messages).Error
		if n := len(next.Messages); n == limit {
			next.ThroughSeq = next.Messages[n-1].Seq
		}
		if err == nil && len(next.Messages) == 0 { // nothing in it has a text
			if _, err = advanceVectors(db, next); err == nil {
				continue
			}
		}
		return next, wrapError(err, "message vectors", "")
	}
}

// advanceVectors records how far the session is embedded; false if a message was edited, or another
// space has begun, since the messages were read.
func advanceVectors(db *gorm.DB, of core.Unembedded) (current bool, err error) {
	done := db.Exec("UPDATE session_readers SET seq = @seq, behind = (SELECT last_seq FROM sessions WHERE id = @session) > @seq WHERE session_id = @session AND reader = @reader AND seq = @after",
		map[string]any{"session": of.SessionID, "reader": models.ReaderVectors, "after": of.AfterSeq, "seq": of.ThroughSeq})
	return done.RowsAffected == 1, done.Error
}

// StoreVectors stores the vectors of the messages, how far the session is embedded, and the call
// that made them. Those of messages that are gone are dropped, and all if one was edited meanwhile.
func (r *MessageVectors) StoreVectors(ctx context.Context, of core.Unembedded, space core.VectorSpace, vectors []core.MessageVector, call core.ModelCall) error {
	_, err := changeSession(ctx, r.db, of.SessionID, func(stx *sessionTx) error {
		ids := idsOf(vectors, func(v core.MessageVector) core.MessageID { return v.MessageID })
		rows, err := findIn[core.Message](stx.tx.Select("id").Where("deleted_at IS NULL AND session_id = ?", of.SessionID), "id", ids)
		if err != nil {
			return err
		}
		var list []models.MessageVector
		for _, v := range vectors {
			if !slices.ContainsFunc(rows, func(m core.Message) bool { return m.ID == v.MessageID }) {
				continue
			}
			list = append(list, models.MessageVector{
				MessageID: string(v.MessageID), SessionID: string(of.SessionID), Owner: of.Owner, Model: space.Model, Dimension: len(v.Vector), Embedding: v.Vector,
			})
		}
		current, err := advanceVectors(stx.tx, of)
		if err == nil && current && len(list) > 0 {
			err = stx.tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&list).Error
		}
		if err == nil {
			err = stx.recordCalls([]core.ModelCall{call}, "")
		}
		return err
	})
	return err
}

// SessionVectors returns vectors of a session's messages, the newest first, before the given
// message; empty = from the newest on.
func (r *MessageVectors) SessionVectors(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageVectorQuery) ([]core.MessageVector, error) {
	allowed, args := "m.deleted_at IS NULL", []any{}
	if !q.AllBranches {
		allowed += " AND m.on_path"
	}
	if !q.SaidBefore.IsZero() {
		allowed, args = allowed+" AND m.created_at < ?", append(args, q.SaidBefore.UTC())
	}
	// No join, which PostgreSQL may do in the order of all messages.
	db := r.db.WithContext(ctx).Table("message_vectors v").Select("v.message_id, v.session_id, v.embedding").
		Where("v.session_id = ? AND v.model = ? AND v.dimension = ? AND v.owner = ?", session, q.Space.Model, q.Space.Dimension, tenant.Owner).
		Where("(SELECT "+allowed+" FROM messages m WHERE m.id = v.message_id)", args...)
	if q.Before != "" {
		db = db.Where("v.message_id < ?", q.Before)
	}
	list := []core.MessageVector{}
	err := db.Order("v.message_id DESC").Limit(q.Limit).Scan(&list).Error
	return list, wrapError(err, "session", session)
}
