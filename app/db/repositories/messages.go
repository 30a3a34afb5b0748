package repositories

import (
	"context"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Messages reads the logs of sessions; runs write them. Safe for concurrent use.
type Messages struct {
	db *gorm.DB
}

// NewMessages returns the messages in db.
func NewMessages(db *gorm.DB) *Messages { return &Messages{db: db} }

// Get returns one message, whatever branch it is on, deleted or not.
func (r *Messages) Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error) {
	if err := known("message", id); err != nil {
		return core.Message{}, err
	}
	if err := known("session", session); err != nil {
		return core.Message{}, err
	}
	// The session is compared here: asked for both, a planner may prefer to look
	// through all messages of the session.
	var row models.Message
	err := r.db.WithContext(ctx).Scopes(ownedBy(scope, session)).Where("id = ?", id).Take(&row).Error
	if err == nil && row.SessionID != string(session) {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return core.Message{}, failure(err, "message", id)
	}
	return row.Core()
}

// current narrows a question to the messages that make the conversation: those
// on the current branch that their author did not delete.
func current(db *gorm.DB) *gorm.DB { return db.Where("on_path AND deleted_at IS NULL") }

// GetMessagesAfter returns ALL messages of the conversation after the given one,
// in the order of their seq; all there are for an empty id (W3). A message that
// is not in the session is core.ErrNotFound, never "nothing comes after it".
func (r *Messages) GetMessagesAfter(ctx context.Context, scope core.Scope, session core.SessionID, after core.MessageID) ([]core.Message, error) {
	if after == "" {
		return r.conversation(ctx, scope, session, func(db *gorm.DB) *gorm.DB { return db })
	}
	if err := known("message", after); err != nil {
		return nil, err
	}
	// The upper bound is no bound. Without it PostgreSQL guesses that a third of the
	// session comes after a message it does not know, and reads the whole table for it.
	list, err := r.conversation(ctx, scope, session, func(db *gorm.DB) *gorm.DB {
		return db.Where("seq > (SELECT CASE WHEN m.session_id = ? THEN m.seq END FROM messages m WHERE m.id = ?) AND seq <= ?",
			session, after, int64(math.MaxInt64))
	})
	if err == nil && len(list) == 0 {
		_, err = r.Get(ctx, scope, session, after)
	}
	return list, err
}

// Pinned returns the conversation's messages that are always in the prompt.
func (r *Messages) Pinned(ctx context.Context, scope core.Scope, session core.SessionID) ([]core.Message, error) {
	return r.conversation(ctx, scope, session, func(db *gorm.DB) *gorm.DB { return db.Where("pinned") })
}

// Range returns the conversation's messages with fromSeq ≤ seq ≤ throughSeq.
func (r *Messages) Range(ctx context.Context, scope core.Scope, session core.SessionID, fromSeq, throughSeq int64) ([]core.Message, error) {
	return r.conversation(ctx, scope, session, func(db *gorm.DB) *gorm.DB {
		return db.Where("seq BETWEEN ? AND ?", fromSeq, throughSeq)
	})
}

func (r *Messages) conversation(ctx context.Context, scope core.Scope, session core.SessionID, which func(*gorm.DB) *gorm.DB) ([]core.Message, error) {
	if err := known("session", session); err != nil {
		return nil, err
	}
	db := r.db.WithContext(ctx)
	var rows []models.Message
	err := db.Scopes(within(scope, session), current, which).Order("seq").Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = mustSee(db, scope, session)
	}
	if err != nil {
		return nil, failure(err, "session", session)
	}
	return values(rows, models.Message.Core)
}

// CountOnPath returns how many messages the conversation has.
func (r *Messages) CountOnPath(ctx context.Context, scope core.Scope, session core.SessionID) (int, error) {
	if err := known("session", session); err != nil {
		return 0, err
	}
	db := r.db.WithContext(ctx)
	var n int64
	err := db.Model(&models.Message{}).Scopes(within(scope, session), current).Count(&n).Error
	if err == nil && n == 0 {
		err = mustSee(db, scope, session)
	}
	return int(n), failure(err, "session", session)
}

// The lists that a cursor of messages may come from.
const (
	messagesForward  = "messages"
	messagesBackward = "messages-before"
)

// List returns a page of the log, without what was deleted, in ascending order of
// seq; those that have siblings say so in Branch. The pages go forward from After,
// or from the beginning; with Before they go
// backward: the first page is the newest part before it, the next one lies before
// that. A cursor goes on in its own direction.
func (r *Messages) List(ctx context.Context, scope core.Scope, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	none := core.Page[core.Message]{}
	if err := known("session", session); err != nil {
		return none, err
	}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	from, more, err := parseCursor(q.Cursor, messagesForward, messagesBackward)
	if err != nil {
		return none, err
	}
	direction := messagesForward
	if more {
		direction = from.List
	} else if q.Before > 0 {
		direction = messagesBackward
	}
	db := r.db.WithContext(ctx)
	list := db.Scopes(within(scope, session)).Where("deleted_at IS NULL AND seq > ?", q.After)
	if !q.AllBranches {
		list = list.Where("on_path")
	}
	if q.Before > 0 {
		list = list.Where("seq < ?", q.Before)
	}
	var rows []models.Message
	err = paged(list, direction, from).Limit(limit + 1).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = mustSee(db, scope, session)
	}
	if err != nil {
		return none, failure(err, "session", session)
	}
	p, err := page(rows, limit, models.Message.Core, func(m models.Message) position {
		return position{List: direction, N: m.Seq}
	})
	if direction == messagesBackward {
		slices.Reverse(p.Items)
	}
	if err == nil {
		err = failure(r.withBranches(db, session, p.Items), "session", session)
	}
	return p, err
}

// paged orders a list of messages and starts it behind the position, if there is
// one.
func paged(list *gorm.DB, direction string, from position) *gorm.DB {
	if direction == messagesForward {
		return list.Where("seq > ?", from.N).Order("seq")
	}
	if from.N > 0 {
		list = list.Where("seq < ?", from.N)
	}
	return list.Order("seq DESC")
}
