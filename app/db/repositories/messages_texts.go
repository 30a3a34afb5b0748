package repositories

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

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
		return db.Scopes(withinLog(tenant, session), inConversation, which)
	}).Order("seq").Rows()
	if err != nil {
		return nil, wrapError(err, "session", session)
	}
	defer func() { _ = rows.Close() }()
	list := []core.Message{}
	for rows.Next() { // a session may have very many, and gorm would take longer to read them than the database
		m, unloaded := models.Message{SessionID: string(session), Owner: tenant.Owner}, 0
		err := rows.Scan(&m.ID, &m.Seq, &m.ParentID, &m.OnPath, &m.Role, &m.Status, &m.ToolCallID, &m.ToolName, &m.Model,
			&m.FinishReason, &m.TokenCount, &m.Pinned, &m.Source, &m.Author, &m.AuthorID, &m.Named, &m.RunID, &m.ClientMessageID, &m.CreatedAt, &m.DeletedAt, &m.RevisedAt,
			&m.Content, &m.Parts, &m.ToolCalls, &m.Metadata, &unloaded)
		if err != nil {
			return nil, wrapError(err, "session", session)
		}
		message, err := m.Core()
		if err != nil {
			return nil, err
		}
		message.Unloaded = unloaded
		list = append(list, message)
	}
	if err = rows.Err(); err == nil && len(list) == 0 {
		err = requireVisible(db, tenant, session)
	}
	if err != nil {
		return nil, wrapError(err, "session", session)
	}
	return list, nil
}

// withTexts selects the messages that match which, with the newest textBytes of their
// texts. first_seq is the oldest of them that is whole; NULL = none. Neither database reads a large text for its size.
// Without their texts, parts and tool calls come without signatures, too.
func withTexts(db *gorm.DB, which func(*gorm.DB) *gorm.DB) *gorm.DB {
	strip, text, arguments, cast := "(SELECT NULLIF(json_group_array(json(json_remove(e.value, %[2]s))), '[]') FROM json_each(%[1]s) AS e)", "'$.text', '$.signature'", "'$.arguments', '$.signature'", ""
	if isPostgres(db) {
		strip = "(SELECT jsonb_agg(e.value - '{%[2]s}'::text[] ORDER BY e.n) FROM jsonb_array_elements(%[1]s) WITH ORDINALITY AS e (value, n))"
		text, arguments, cast = "text,signature", "arguments,signature", "::text"
	}
	size := fmt.Sprintf("octet_length(content) + COALESCE(octet_length(parts%[1]s), 0) + COALESCE(octet_length(tool_calls%[1]s), 0) + COALESCE(octet_length(metadata%[1]s), 0)", cast)
	sizes := which(db.Table("messages")).Select("seq, SUM(" + size + ") OVER (ORDER BY seq DESC ROWS UNBOUNDED PRECEDING) AS bytes")
	first := db.Table("(?) AS sizes", sizes).Select("MIN(seq) AS first_seq").Where("bytes <= ?", textBytes)
	either := "CASE WHEN seq >= first_seq THEN %s ELSE %s END AS %s"
	return which(db.Clauses(withClause{"texts", first}).Table("messages")).Joins("CROSS JOIN texts").Select(messageColumns + ", " +
		fmt.Sprintf(either, "content", "''", "content") + ", " + fmt.Sprintf(either, "parts", fmt.Sprintf(strip, "parts", text), "parts") + ", " +
		fmt.Sprintf(either, "tool_calls", fmt.Sprintf(strip, "tool_calls", arguments), "tool_calls") + ", " + fmt.Sprintf(either, "metadata", "NULL", "metadata") + ", " +
		fmt.Sprintf(either, "0", size, "unloaded"))
}

// withClause is a WITH before a SELECT: a table that is computed once. PostgreSQL may
// compute a joined subquery for each row.
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

// maxMessageIDs bounds the ids of one statement.
const maxMessageIDs = 500

// GetMessages returns those of the messages that exist in the session, whole, of any
// branch, in the order of their seq. Deleted ones are missing. Without a session they are those of
// all sessions of the scope that are not archived.
func (r *Messages) GetMessages(ctx context.Context, tenant core.Tenant, session core.SessionID, ids []core.MessageID) ([]core.Message, error) {
	db := r.db.WithContext(ctx)
	visible := func(db *gorm.DB) *gorm.DB { return ownedBy(tenant, session)(db).Where(inLogOf, session) }
	if session == "" {
		inLog := visibleTo(tenant)(db.Model(&models.Session{}).Select("1")).
			Where("sessions.id = messages.session_id AND messages.seq <= sessions.last_seq AND archived_at IS NULL")
		visible = func(db *gorm.DB) *gorm.DB { return db.Where("EXISTS (?)", inLog) }
	} else {
		db = byID(ctx, db, "session", session)
	}
	var rows []models.Message
	for batch := range slices.Chunk(ids, maxMessageIDs) {
		var found []models.Message
		if err := db.Where("id IN ? AND deleted_at IS NULL", batch).Scopes(visible).Find(&found).Error; err != nil {
			return nil, wrapError(err, "session", session)
		}
		rows = append(rows, found...)
	}
	// The session is compared here, as in Get.
	rows = slices.DeleteFunc(rows, func(m models.Message) bool { return session != "" && m.SessionID != string(session) })
	if len(rows) == 0 && session != "" {
		if err := requireVisible(db, tenant, session); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(rows, func(a, b models.Message) int { return cmp.Compare(a.Seq, b.Seq) })
	return mapRows(rows, models.Message.Core)
}
