package repositories

import (
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// How imports are written: so many rows a statement (neither database takes many
// more), and up to so many messages with an event each.
const (
	appendBatch  = 250
	importEvents = 100
)

// Append puts messages at the end of the session's current path without a run. It
// is one transaction: all of them are in the log then, or none.
//
// A message has the event message.created. An import of more than 100 messages has
// one event for all, messages.imported.
//
// Of a single message a client_message_id that the session knows already answers
// with the message of the first time and changes nothing. The errors besides
// ErrNotFound: ErrConflict for an archived session, while the session has a run
// that is active or queued (the messages would stand between a question and its
// answer), and for a client_message_id that is taken; ErrUnprocessable for tool
// results, at the beginning, that answer no open call at the end of the path.
func (r *Messages) Append(ctx context.Context, scope core.Scope, in core.AppendMessages) (core.Appended, error) {
	var out core.Appended
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, in.SessionID, visible(scope))
		if err != nil {
			return err
		}
		if !in.Import && len(in.Messages) == 1 {
			known, err := j.appended(in.Messages[0].ClientMessageID)
			if err != nil || known != nil {
				out = core.Appended{Session: j.session.Core(), Messages: known, Repeated: true}
				return err
			}
		}
		out, err = j.append(in)
		return err
	})
	if err != nil {
		return core.Appended{}, failure(err, "session", in.SessionID)
	}
	return out, nil
}

// appended returns the message with the client message id, nil if the session has
// none. It is a conflict if a run answers it.
func (j *journal) appended(id string) ([]core.Message, error) {
	if id == "" {
		return nil, nil
	}
	if !storableText(id) {
		return nil, core.Errorf(core.ErrInvalid, unstorable)
	}
	var rows []models.Message
	err := j.tx.Where("session_id = ? AND client_message_id = ?", j.session.ID, id).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	if rows[0].RunID != "" {
		return nil, taken(id)
	}
	return values(rows, models.Message.Core)
}

func taken(id string) error {
	return core.Errorf(core.ErrConflict, "client_message_id %s belongs to another message of the session", core.Clip(id, 200))
}

// append is Append, with the session locked.
func (j *journal) append(in core.AppendMessages) (core.Appended, error) {
	f, err := j.facts("", "")
	if err != nil {
		return core.Appended{}, err
	}
	if err := j.admitAppend(f, in); err != nil {
		return core.Appended{}, err
	}
	out := core.Appended{FirstSeq: j.session.LastSeq + 1, LastSeq: j.session.LastSeq + int64(len(in.Messages))}
	add := j.add
	quiet := in.Import && len(in.Messages) > importEvents
	if quiet {
		add = j.put
	}
	parent := core.MessageID(f.ParentID)
	for batch := range slices.Chunk(in.Messages, appendBatch) {
		stored, err := add(batch, parent, "")
		if err != nil {
			return core.Appended{}, err
		}
		parent = stored[len(stored)-1].ID
		if !quiet {
			out.Messages = append(out.Messages, stored...)
		}
	}
	if quiet {
		j.emit(core.NewEvent("", "", core.EventMessagesImported, core.ImportedData{
			Imported: len(in.Messages), FirstSeq: out.FirstSeq, LastSeq: out.LastSeq,
		}))
	}
	if err := j.close(); err != nil {
		return core.Appended{}, err
	}
	out.Session, out.Events = j.session.Core(), j.events
	return out, nil
}

// admitAppend refuses messages that must not enter the log now.
func (j *journal) admitAppend(f facts, in core.AppendMessages) error {
	switch {
	case j.session.ArchivedAt != nil:
		return core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", j.session.ID)
	case f.Active+f.Queued > 0:
		return core.Errorf(core.ErrConflict,
			"session %s is answering a message: one that is only added would stand between question and answer; wait for the end of its runs, or add it before the next question", j.session.ID)
	}
	if err := j.openNames(in.Messages); err != nil {
		return err
	}
	if len(in.Messages) == 0 || in.Messages[0].Role != core.RoleTool {
		return nil
	}
	return j.answersOpen(in.Messages)
}

// openNames refuses client message ids that the session knows, or that a run has.
func (j *journal) openNames(messages []core.Message) error {
	var names []string
	for _, m := range messages {
		if m.ClientMessageID != "" {
			names = append(names, m.ClientMessageID)
		}
	}
	for batch := range slices.Chunk(names, maxNames) {
		var found []string
		err := j.tx.Raw(`SELECT client_message_id FROM messages WHERE session_id = ? AND client_message_id IN ?
UNION SELECT client_message_id FROM runs WHERE session_id = ? AND client_message_id IN ?`,
			j.session.ID, batch, j.session.ID, batch).Scan(&found).Error
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return taken(slices.Min(found))
		}
	}
	return nil
}

// maxNames bounds the client message ids of one statement.
const maxNames = 500

// answersOpen refuses leading tool results without an open call at the end of the
// current path.
func (j *journal) answersOpen(messages []core.Message) error {
	open, err := j.openCalls()
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.Role != core.RoleTool {
			return nil
		}
		if open[m.ToolCallID]--; open[m.ToolCallID] < 0 {
			return core.Errorf(core.ErrUnprocessable,
				"tool_call_id %s: the last messages of the session have no such call that waits for its result", core.Clip(m.ToolCallID, 200))
		}
	}
	return nil
}

const tailSQL = `SELECT * FROM messages WHERE session_id = @s AND on_path AND seq >= (
	SELECT COALESCE(MAX(seq), 0) FROM messages WHERE session_id = @s AND on_path AND role NOT IN ('tool', 'system')) ORDER BY seq`

// openCalls returns the calls at the end of the current path that have no result
// yet, and how many there are of each id.
func (j *journal) openCalls() (map[string]int, error) {
	var rows []models.Message
	if err := j.tx.Raw(tailSQL, map[string]any{"s": j.session.ID}).Scan(&rows).Error; err != nil {
		return nil, err
	}
	open := map[string]int{}
	tail, err := values(rows, models.Message.Core)
	for _, m := range tail {
		for _, c := range m.ToolCalls {
			open[c.ID]++
		}
		if m.Role == core.RoleTool {
			open[m.ToolCallID]--
		}
	}
	return open, err
}
