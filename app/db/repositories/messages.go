package repositories

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Messages reads and appends to the logs of sessions; runs write to them as well. Safe for
// concurrent use.
type Messages struct{ db *gorm.DB }

// NewMessages returns the messages in db.
func NewMessages(db *gorm.DB) *Messages { return &Messages{db: db} }

// Get returns one message of any branch, deleted or not, with its revisions.
func (r *Messages) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Message, error) {
	// The session is compared here: with both conditions a planner may scan all messages of
	// the session.
	var row core.Message
	err := byID(ctx, byID(ctx, r.db, "session", session), "message", id).Where(ownedBy(tenant, session)).Where("id = ?", id).Where(inLogOf, session).Take(&row).Error
	if err == nil && row.SessionID != session {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return core.Message{}, wrapError(err, "message", id)
	}
	list := []core.Message{row}
	err = addRevisions(r.db.WithContext(ctx), list)
	return list[0], wrapError(err, "message", id)
}

// conversationSQL is the condition for the messages of the conversation: those on the current
// branch that were not deleted.
const conversationSQL = "on_path AND deleted_at IS NULL"

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

// Refused returns the conversation's turns that a provider has refused or a filter cut off, by the marks of their messages.
func (r *Messages) Refused(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.RefusedTurn, error) {
	db, turns := byID(ctx, r.db, "session", session), []core.RefusedTurn{}
	// Only the ranges behind users' messages do not overlap: rows are read once. The upper bound is as in GetMessagesAfter.
	next := db.Table("messages AS n").Select("seq").Where("session_id = ? AND seq > messages.seq AND seq <= ? AND role = 'user'", session, int64(math.MaxInt64)).Where(conversationSQL).Order("seq").Limit(1)
	err := db.Model(&core.Message{}).Where(withinLog(tenant, session)).Where(conversationSQL).Where("finish_reason IN ('refused', 'content_filter')").
		Select("seq, role, finish_reason, CASE WHEN role = 'user' THEN COALESCE((?), ?) ELSE seq + 1 END AS until", next, int64(math.MaxInt64)).Order("seq").Scan(&turns).Error
	return turns, wrapError(err, "session", session)
}

// CountOnPath returns the number of messages in the conversation up to a seq.
func (r *Messages) CountOnPath(ctx context.Context, tenant core.Tenant, session core.SessionID, through int64) (int, error) {
	db := byID(ctx, r.db, "session", session)
	n, err := count(db.Model(&core.Message{}).Where(withinLog(tenant, session)).Where(conversationSQL).Where("seq <= ?", through))
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

func longMessageColumns() longColumns {
	return longColumns{texts: []string{"content"}, jsons: []string{"parts", "tool_calls", "metadata", "feedback"}}
}

// List returns a page of the log without deleted messages, in ascending order of seq;
// Branch is set on messages with siblings. Pages go forward from After, or from the
// beginning. With Before they go backward: the first page is the newest part before it, the
// next page precedes that. With Descending the newest message comes first. A cursor
// continues in its own direction.
func (r *Messages) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageQuery) (none core.Page[core.Message], err error) {
	from, err := parseCursor(q.Cursor, messagesForward, messagesBackward, messagesDescending)
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
	list := db.Where(withinLog(tenant, session)).Where("deleted_at IS NULL AND seq > ?", q.After)
	if !q.AllBranches {
		list = list.Where("on_path")
	}
	if q.Before > 0 {
		list = list.Where("seq < ?", q.Before)
	}
	long := longMessageColumns()
	if q.Revisions {
		long.related = []string{revisionBytesSQL}
	}
	q.Bytes = cmp.Or(q.Bytes, core.MaxMessagePageBytes)
	p, err := findPage(list.Model(&core.Message{}), keyset[core.Message]{list: direction, column: "seq", ascending: direction == messagesForward}, q.PageQuery, long,
		func(m core.Message) position { return position{N: m.Seq} })
	if err == nil && len(p.Items) == 0 {
		err = requireVisible(db, tenant, session)
	}
	if err != nil {
		return none, wrapError(err, "session", session)
	}
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

// textBytes is how many bytes of texts are loaded with the messages of a conversation of
// any length: as much as a prompt of 200,000 tokens contains, and little enough that 256
// concurrent runs hold 256 MiB.
const textBytes = 1 << 20

// messageColumns are the columns of a conversation's messages without their texts.
const messageColumns = "id, seq, parent_id, on_path, role, status, tool_call_id, tool_name, model, " +
	"finish_reason, token_count, pinned, source, author, author_id, named, run_id, client_message_id, created_at, deleted_at, revised_at"

// loadConversation returns the messages of the conversation that match which, in the order
// of their seq: the newest of them whole, up to textBytes, the others without their texts.
// It is one statement, which reads no text that it does not return.
func (r *Messages) loadConversation(ctx context.Context, tenant core.Tenant, session core.SessionID, which func(*gorm.DB) *gorm.DB) ([]core.Message, error) {
	db := byID(ctx, r.db, "session", session)
	rows, err := withTexts(db, func(db *gorm.DB) *gorm.DB {
		return db.Where(withinLog(tenant, session)).Where(conversationSQL).Scopes(which)
	}).Order("seq").Rows()
	if err != nil {
		return nil, wrapError(err, "session", session)
	}
	defer func() { _ = rows.Close() }()
	list := []core.Message{}
	for rows.Next() { // a session may have very many, and gorm would take longer to read them than the database
		m := core.Message{SessionID: session, Owner: tenant.Owner}
		var parent, run, client models.Ref
		var parts, calls, metadata models.JSON
		err := rows.Scan(&m.ID, &m.Seq, &parent, &m.OnPath, &m.Role, &m.Status, &m.ToolCallID, &m.ToolName, &m.Model,
			&m.FinishReason, &m.TokenCount, &m.Pinned, &m.Source, &m.Author, &m.AuthorID, &m.Named, &run, &client, &m.CreatedAt, &m.DeletedAt, &m.RevisedAt,
			&m.Content, &parts, &calls, &metadata, &m.Unloaded)
		if err = errors.Join(err, parts.Decode(&m.Parts), calls.Decode(&m.ToolCalls)); err != nil {
			return nil, wrapError(err, "session", session)
		}
		m.ParentID, m.RunID, m.ClientMessageID, m.Metadata = core.MessageID(parent), core.RunID(run), string(client), json.RawMessage(metadata)
		list = append(list, m)
	}
	if err = rows.Err(); err == nil && len(list) == 0 {
		err = requireVisible(db, tenant, session)
	}
	return list, wrapError(err, "session", session)
}

// withTexts selects the messages that match which, with the newest textBytes of their
// texts. first_seq is the oldest of them that is whole; NULL = none. Neither database reads a large text for its size.
// Without their texts, parts and tool calls come without signatures, too.
func withTexts(db *gorm.DB, which func(*gorm.DB) *gorm.DB) *gorm.DB {
	strip, text, arguments := "(SELECT NULLIF(json_group_array(json(json_remove(e.value, %[2]s))), '[]') FROM json_each(%[1]s) AS e)", "'$.text', '$.signature'", "'$.arguments', '$.signature'"
	if isPostgres(db) {
		strip = "(SELECT jsonb_agg(e.value - '{%[2]s}'::text[] ORDER BY e.n) FROM jsonb_array_elements(%[1]s) WITH ORDINALITY AS e (value, n))"
		text, arguments = "text,signature", "arguments,signature"
	}
	size := messageBytesSQL(db)
	sizes := which(db.Table("messages")).Select("seq, SUM(" + size + ") OVER (ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS bytes")
	first := db.Table("(?) AS sizes", sizes).Select("MIN(seq) AS first_seq").Where("bytes <= ?", textBytes)
	either := "CASE WHEN seq >= first_seq THEN %s ELSE %s END AS %s"
	return which(db.Clauses(withClause{"texts", first}).Table("messages")).Joins("CROSS JOIN texts").Select(messageColumns + ", " +
		fmt.Sprintf(either, "content", "''", "content") + ", " + fmt.Sprintf(either, "parts", fmt.Sprintf(strip, "parts", text), "parts") + ", " +
		fmt.Sprintf(either, "tool_calls", fmt.Sprintf(strip, "tool_calls", arguments), "tool_calls") + ", " + fmt.Sprintf(either, "metadata", "NULL", "metadata") + ", " +
		fmt.Sprintf(either, "0", size, "unloaded"))
}

// withClause is a WITH before a SELECT: a table that is computed once. PostgreSQL computes a joined subquery for each row
// where it does not know yet how many there are: 5,000 new messages take 16 s.
type withClause struct {
	name  string
	table *gorm.DB
}

// ModifyStatement adds the clause.
func (w withClause) ModifyStatement(s *gorm.Statement) {
	c := s.Clauses["SELECT"]
	c.BeforeExpression = clause.Expr{SQL: "WITH " + w.name + " AS MATERIALIZED (?)", Vars: []any{w.table}}
	s.Clauses["SELECT"] = c
}

// Build does nothing: the SELECT builds it.
func (withClause) Build(clause.Builder) {}

// GetMessages returns those of the messages that exist in the session, whole, of any
// branch, in the order of their seq. Deleted ones are missing. Without a session they are those of
// all sessions of the scope that are not archived.
func (r *Messages) GetMessages(ctx context.Context, tenant core.Tenant, session core.SessionID, ids []core.MessageID) ([]core.Message, error) {
	db := r.db.WithContext(ctx)
	visible := db.Where("EXISTS (?)", db.Model(&models.Session{}).Select("1").Where(visibleTo(tenant)).
		Where("sessions.id = messages.session_id AND messages.seq <= sessions.last_seq AND archived_at IS NULL"))
	if session != "" {
		db = byID(ctx, db, "session", session)
		visible = db.Where(ownedBy(tenant, session)).Where(inLogOf, session)
	}
	rows, err := findIn[core.Message](visible.Where("deleted_at IS NULL"), "id", ids)
	if err != nil {
		return nil, wrapError(err, "session", session)
	}
	// The session is compared here, as in Get.
	rows = slices.DeleteFunc(rows, func(m core.Message) bool { return session != "" && m.SessionID != session })
	if len(rows) == 0 && session != "" {
		if err := requireVisible(db, tenant, session); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b core.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows, nil
}

// SetRecorded gives messages of the log, by their seq, the authors and times of a recorded
// conversation that was replayed; empty ones change nothing. Search counts both, so it indexes
// the messages again.
func (r *Messages) SetRecorded(ctx context.Context, tenant core.Tenant, session core.SessionID, recorded []core.Message) error {
	_, err := changeLog(ctx, r.db, session, func(stx *sessionTx) error {
		indexed, err := stx.lockIndex()
		if err != nil {
			return err
		}
		for _, m := range recorded {
			changes := map[string]any{}
			if m.Author != "" {
				changes["author"] = m.Author
			}
			if !m.CreatedAt.IsZero() {
				changes["created_at"] = m.CreatedAt
			}
			if len(changes) == 0 {
				continue
			}
			if err := stx.tx.Model(&core.Message{}).Where("session_id = ? AND seq = ?", session, m.Seq).UpdateColumns(changes).Error; err != nil {
				return err
			}
			indexed = min(indexed, m.Seq-1)
		}
		err = stx.tx.Model(&models.SessionReader{SessionID: string(stx.session.ID), Reader: models.ReaderSearch}).UpdateColumn("seq", indexed).Error
		if err != nil {
			return err
		}
		return stx.tx.Model(&models.Session{}).Where("id = ?", session).UpdateColumn("indexed_seq", indexed).Error
	}, visibleTo(tenant))
	return err
}
