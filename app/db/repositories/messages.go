package repositories

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Messages reads and appends to the logs of sessions; runs write to them as well. Safe for
// concurrent use.
type Messages struct {
	db *gorm.DB
}

// NewMessages returns the messages in db.
func NewMessages(db *gorm.DB) *Messages { return &Messages{db: db} }

// Get returns one message of any branch, deleted or not, with its revisions.
func (r *Messages) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Message, error) {
	// The session is compared here: with both conditions a planner may scan all messages of
	// the session.
	var row models.Message
	err := byID(ctx, byID(ctx, r.db, "session", session), "message", id).Scopes(ownedBy(tenant, session)).Where("id = ?", id).Where(inLogOf, session).Take(&row).Error
	if err == nil && row.SessionID != string(session) {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return core.Message{}, wrapError(err, "message", id)
	}
	list, err := mapRows([]models.Message{row}, models.Message.Core)
	if err == nil {
		err = wrapError(addRevisions(r.db.WithContext(ctx), list), "message", id)
	}
	if err != nil {
		return core.Message{}, err
	}
	return list[0], nil
}

// inConversation narrows a query to the messages of the conversation: those on the current
// branch that were not deleted.
func inConversation(db *gorm.DB) *gorm.DB { return db.Where("on_path AND deleted_at IS NULL") }

// GetMessagesAfter returns ALL messages of the conversation after the given one, in the
// order of their seq; all messages for an empty id. The newest textBytes bytes of their
// texts are loaded; older messages come without (Message.Unloaded). A message that is not
// in the session is core.ErrNotFound, never an empty list.
func (r *Messages) GetMessagesAfter(ctx context.Context, tenant core.Tenant, session core.SessionID, after core.MessageID) ([]core.Message, error) {
	if after == "" {
		return r.loadConversation(ctx, tenant, session, func(db *gorm.DB) *gorm.DB { return db })
	}
	if err := requireID("message", after); err != nil {
		return nil, err
	}
	// The upper bound has no effect on the result. Without it PostgreSQL estimates that a
	// third of the session comes after an unknown message, and scans the whole table.
	list, err := r.loadConversation(ctx, tenant, session, func(db *gorm.DB) *gorm.DB {
		return db.Where("seq > (SELECT CASE WHEN m.session_id = ? THEN m.seq END FROM messages m WHERE m.id = ?) AND seq <= ?",
			session, after, int64(math.MaxInt64))
	})
	if err == nil && len(list) == 0 {
		_, err = r.Get(ctx, tenant, session, after)
	}
	return list, err
}

// Pinned returns the conversation's pinned messages, which are always in the prompt. Their
// texts are loaded as by GetMessagesAfter.
func (r *Messages) Pinned(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Message, error) {
	return r.loadConversation(ctx, tenant, session, func(db *gorm.DB) *gorm.DB { return db.Where("pinned") })
}

// CountOnPath returns the number of messages in the conversation.
func (r *Messages) CountOnPath(ctx context.Context, tenant core.Tenant, session core.SessionID) (int, error) {
	db := byID(ctx, r.db, "session", session)
	var n int64
	err := db.Model(&models.Message{}).Scopes(withinLog(tenant, session), inConversation).Count(&n).Error
	if err == nil && n == 0 {
		err = requireVisible(db, tenant, session)
	}
	return int(n), wrapError(err, "session", session)
}

// The lists that a cursor of messages may belong to.
const (
	messagesForward  = "messages"
	messagesBackward = "messages-before"

	messagesDescending = "messages-descending"
)

// longMessageColumns are the columns of messages that may be long.
func longMessageColumns() longColumns {
	return longColumns{texts: []string{"content"}, jsons: []string{"parts", "tool_calls", "metadata", "feedback"}}
}

// List returns a page of the log without deleted messages, in ascending order of seq;
// Branch is set on messages with siblings. Pages go forward from After, or from the
// beginning. With Before they go backward: the first page is the newest part before it, the
// next page precedes that. With Descending the newest message comes first. A cursor
// continues in its own direction.
func (r *Messages) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	none := core.Page[core.Message]{}
	limit, from, err := pageStart(q.Limit, q.Cursor, messagesForward, messagesBackward, messagesDescending)
	if err != nil {
		return none, err
	}
	direction := messagesForward
	if from.isSet() {
		direction = from.List
	} else if q.Descending {
		direction = messagesDescending
	} else if q.Before > 0 {
		direction = messagesBackward
	}
	db := byID(ctx, r.db, "session", session)
	list := db.Scopes(withinLog(tenant, session)).Where("deleted_at IS NULL AND seq > ?", q.After)
	if !q.AllBranches {
		list = list.Where("on_path")
	}
	if q.Before > 0 {
		list = list.Where("seq < ?", q.Before)
	}
	var rows []models.Message
	list = seekMessages(list, direction, from).Model(&models.Message{}).Session(&gorm.Session{})
	long := longMessageColumns()
	if q.Revisions {
		long.related = []string{revisionBytesSQL}
	}
	limit, err = fitRows(list, long, limit, cmp.Or(q.Bytes, core.MaxMessagePageBytes))
	if err == nil {
		err = list.Limit(limit + 1).Find(&rows).Error
	}
	if err == nil && len(rows) == 0 {
		err = requireVisible(db, tenant, session)
	}
	if err != nil {
		return none, wrapError(err, "session", session)
	}
	p, err := pageOf(rows, limit, models.Message.Core, func(m models.Message) position {
		return position{List: direction, N: m.Seq}
	})
	if direction == messagesBackward {
		slices.Reverse(p.Items)
	}
	if err == nil {
		err = wrapError(r.withBranches(db, session, p.Items), "session", session)
	}
	if err == nil && q.Revisions {
		err = wrapError(addRevisions(db, p.Items), "session", session)
	}
	return p, err
}

// seekMessages orders a list of messages and starts it after the position, if there is one.
func seekMessages(list *gorm.DB, direction string, from position) *gorm.DB {
	if direction == messagesForward {
		return list.Where("seq > ?", from.N).Order("seq")
	}
	if from.N > 0 {
		list = list.Where("seq < ?", from.N)
	}
	return list.Order("seq DESC")
}
