package repositories

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// MessageVectors stores the vectors of messages. Safe for concurrent use.
type MessageVectors struct{ db *gorm.DB }

var _ core.MessageVectorStore = (*MessageVectors)(nil)

// NewMessageVectors returns the vectors in db.
func NewMessageVectors(db *gorm.DB) *MessageVectors { return &MessageVectors{db: db} }

// vectorLease is how long a worker embeds messages without claiming anew.
const vectorLease = 2 * time.Minute

// Claim makes the worker the one that embeds messages for two minutes, and begins anew for
// another space; false = another worker is at it.
func (r *MessageVectors) Claim(ctx context.Context, worker string, space core.VectorSpace) (claimed bool, err error) {
	const otherSpace = "(model <> @model OR @dimension > 0 AND dimension > 0 AND dimension <> @dimension)"
	free := " id = 1 AND (worker = @worker OR leased_until IS NULL OR leased_until < " + clockBoundSQL(r.db, 0) + ")"
	args := map[string]any{"worker": worker, "model": space.Model, "dimension": space.Dimension}
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		err := tx.Exec("DELETE FROM message_vector_sessions WHERE EXISTS (SELECT 1 FROM message_vector_work WHERE"+free+" AND "+otherSpace+")", args).Error
		if err != nil {
			return err
		}
		res := tx.Exec("UPDATE message_vector_work SET worker = @worker, model = @model, leased_until = "+clockSQL(r.db, vectorLease)+
			", through_at = CASE WHEN "+otherSpace+" THEN NULL ELSE through_at END"+
			", dimension = CASE WHEN model <> @model OR @dimension > 0 THEN @dimension ELSE dimension END WHERE"+free, args)
		claimed = res.RowsAffected == 1
		return res.Error
	})
	return claimed, wrapError(err, "message vectors", "")
}

// embeddableSQL are the messages that have a text of a person or a model, in sessions that are kept.
const embeddableSQL = "m.role IN ('user', 'assistant') AND m.content <> '' AND m.deleted_at IS NULL"

// embeddedText is how many characters of a message are embedded: its beginning.
const embeddedText = 6_000

// Unembedded returns messages of one session without a vector in the space, in the order of the
// log, unless one of the owners has it: those that were edited, or else the next after those
// that have one. An empty SessionID = there are none.
func (r *MessageVectors) Unembedded(ctx context.Context, space core.VectorSpace, except []string, limit int) (core.Unembedded, error) {
	db := r.db.WithContext(ctx)
	next, err := r.edited(db, except, limit)
	for err == nil && next.SessionID == "" {
		var found bool
		if next, found, err = r.unembedded(db, space, except, limit); !found {
			break
		}
		if err == nil && len(next.Messages) == 0 { // nothing in it has a text
			err = r.storeProgress(db, next, space)
			next = core.Unembedded{}
		}
	}
	return next, wrapError(err, "message vectors", "")
}

// edited returns messages of one session whose vectors are outdated.
func (r *MessageVectors) edited(db *gorm.DB, except []string, limit int) (core.Unembedded, error) {
	var session models.Session
	err := db.Raw(`SELECT s.* FROM message_vectors v JOIN messages m ON m.id = v.message_id JOIN sessions s ON s.id = v.session_id
		WHERE v.model = '' AND `+embeddableSQL+" AND s.owner NOT IN ? ORDER BY v.message_id LIMIT 1", append(except, "")).Scan(&session).Error
	if err != nil || session.ID == "" {
		return core.Unembedded{}, err
	}
	out := core.Unembedded{SessionID: core.SessionID(session.ID), Owner: session.Owner}
	out.Messages, err = embeddableMessages(db.Where("m.id IN (SELECT message_id FROM message_vectors WHERE model = '' AND session_id = ?)", session.ID), limit)
	return out, err
}

// embeddedSession is a session with how far it is embedded.
type embeddedSession struct {
	models.Session
	ThroughSeq int64
}

// settledTime is how long ago a change of a session was that every transaction sees now.
const settledTime = 10 * time.Minute

// unembedded returns the next messages of the session that has waited for longest; false = none
// waits.
func (r *MessageVectors) unembedded(db *gorm.DB, space core.VectorSpace, except []string, limit int) (core.Unembedded, bool, error) {
	begin := time.Now()
	var session embeddedSession
	err := db.Raw(`SELECT s.*, COALESCE(v.through_seq, 0) AS through_seq FROM sessions s LEFT JOIN message_vector_sessions v ON v.session_id = s.id AND v.model = @model
		WHERE s.last_seq > COALESCE(v.through_seq, 0) AND NOT s.temporary AND s.owner NOT IN @except
		AND (s.updated_at >= (SELECT through_at FROM message_vector_work WHERE id = 1) OR (SELECT through_at FROM message_vector_work WHERE id = 1) IS NULL)
		ORDER BY s.updated_at, s.id LIMIT 1`, map[string]any{"model": space.Model, "except": append(except, "")}).Scan(&session).Error
	if err != nil {
		return core.Unembedded{}, false, err
	}
	if session.ID == "" {
		if len(except) == 0 { // nobody waits
			err = db.Model(&models.MessageVectorWork{}).Where("id = 1").UpdateColumn("through_at", begin.Add(-settledTime).UTC()).Error
		}
		return core.Unembedded{}, false, err
	}
	out := core.Unembedded{SessionID: core.SessionID(session.ID), Owner: session.Owner, ThroughSeq: session.LastSeq}
	out.Messages, err = embeddableMessages(db.Where("m.session_id = ? AND m.seq > ? AND m.seq <= ?", session.ID, session.ThroughSeq, session.LastSeq), limit)
	if n := len(out.Messages); n == limit {
		out.ThroughSeq = out.Messages[n-1].Seq
	}
	return out, true, err
}

// embeddableMessages returns messages that have a text to embed, in the order of the log.
func embeddableMessages(db *gorm.DB, limit int) ([]core.Message, error) {
	var rows []models.Message
	err := db.Table("messages m").Select("m.id, m.session_id, m.owner, m.seq, m.role, substr(m.content, 1, ?) AS content, m.created_at", embeddedText).
		Where(embeddableSQL).Order("m.seq").Limit(limit).Scan(&rows).Error
	if err != nil {
		return nil, err
	}
	return mapRows(rows, models.Message.Core)
}

// storeProgress records how far the session is embedded.
func (r *MessageVectors) storeProgress(db *gorm.DB, of core.Unembedded, space core.VectorSpace) error {
	if of.ThroughSeq == 0 {
		return nil
	}
	row := models.MessageVectorSession{SessionID: string(of.SessionID), Owner: of.Owner, Model: space.Model, ThroughSeq: of.ThroughSeq}
	return db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error
}

// StoreVectors stores the vectors of the messages, how far the session is embedded, and the call
// that made them. Those of messages that are gone are dropped.
func (r *MessageVectors) StoreVectors(ctx context.Context, of core.Unembedded, space core.VectorSpace, vectors []core.MessageVector, call core.ModelCall) error {
	err := changeSession(ctx, r.db, of.SessionID, func(stx *sessionTx) error {
		ids := make([]models.Ref, len(vectors))
		for i, v := range vectors {
			ids[i] = models.Ref(v.MessageID)
		}
		rows, err := findIn[models.Message](stx.tx.Select("id").Where("deleted_at IS NULL AND session_id = ?", of.SessionID), "id", ids)
		if err != nil {
			return err
		}
		var list []models.MessageVector
		for _, v := range vectors {
			if !slices.ContainsFunc(rows, func(m models.Message) bool { return m.ID == string(v.MessageID) }) {
				continue
			}
			list = append(list, models.MessageVector{
				MessageID: string(v.MessageID), SessionID: string(of.SessionID), Owner: of.Owner, Model: space.Model, Dimension: len(v.Vector), Embedding: models.Vector(v.Vector),
			})
		}
		if len(list) > 0 {
			if err := stx.tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&list).Error; err != nil {
				return err
			}
		}
		if err := r.storeProgress(stx.tx, of, space); err != nil {
			return err
		}
		if err := stx.recordCalls([]core.ModelCall{call}, ""); err != nil {
			return err
		}
		return stx.saveChanges()
	})
	return wrapError(err, "session", of.SessionID)
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
	var rows []models.MessageVector
	if err := db.Order("v.message_id DESC").Limit(q.Limit).Scan(&rows).Error; err != nil {
		return nil, wrapError(err, "session", session)
	}
	return mapRows(rows, func(row models.MessageVector) (core.MessageVector, error) {
		v, err := models.ParseVector(row.Embedding)
		if err != nil {
			err = fmt.Errorf("vector of message %s: %w", row.MessageID, err)
		}
		return core.MessageVector{MessageID: core.MessageID(row.MessageID), SessionID: core.SessionID(row.SessionID), Vector: v}, err
	})
}
