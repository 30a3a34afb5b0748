package repositories

import (
	"context"
	"fmt"
	"math"
	"slices"

	"bobbin/app/core"
)

// How many messages, and bytes of them, one transaction stores, and up to how many imported
// messages have an event each.
const (
	appendRows   = 250
	appendBytes  = 1 << 20
	importEvents = 100
)

// Append adds messages to the end of the session's current path, or after in.Branch, without a
// run: all of them, or none. Those of a branch have to fit into one transaction.
//
// Each message emits message.created. An import of more than 100 messages, or of more than
// 1 MiB, emits one messages.imported instead. If it does not fit into a single transaction
// it is written in steps; it stops, and leaves nothing in the log, when ctx ends before the
// last step.
//
// If the session already knows the client_message_id of a single message, Append returns
// the stored message and changes nothing. Errors besides ErrNotFound: ErrConflict for an
// archived session, while the session has an active or queued run (the messages would
// separate a question from its answer), for an import's client_message_id that is in use, and
// for a busy session; ErrUnprocessable for leading tool results that answer no open call at the
// end of the path.
func (r *Messages) Append(ctx context.Context, tenant core.Tenant, in core.AppendMessages) (core.Appended, error) {
	var out core.Appended
	err := commitOnce(ctx, func(note resultRecorder) (err error) {
		if fitsOneStep(in) || in.Branch != nil {
			out, err = r.appendInStep(ctx, tenant, in, note)
		} else {
			out, err = r.importInSteps(ctx, tenant, in, note)
		}
		return err
	}, func(name string) error {
		out.Repeated = true
		_, err := fmt.Sscanf(name, appendResultFormat, &out.FirstSeq, &out.LastSeq)
		return err
	})
	return out, wrapError(err, "session", in.SessionID)
}

// appendInStep is Append in one transaction.
func (r *Messages) appendInStep(ctx context.Context, tenant core.Tenant, in core.AppendMessages, note resultRecorder) (out core.Appended, err error) {
	ctx, cancel := stepContext(ctx)
	defer cancel()
	_, err = changeLog(ctx, r.db, in.SessionID, func(stx *sessionTx) (err error) {
		if out, err = stx.appendOnce(in); err != nil || out.Repeated {
			return err
		}
		return note(stx.tx, fmt.Sprintf(appendResultFormat, out.FirstSeq, out.LastSeq))
	}, visibleTo(tenant))
	return out, err
}

// appendResultFormat names appended messages by the first and the last seq.
const appendResultFormat = "%d-%d"

func clientIDTakenError(id string) error {
	return core.Errorf(core.ErrConflict, "client_message_id %s belongs to another message of the session", core.Clip(id, 200))
}

// appendOnce is Append with the session locked, unless it knows the client message id of a single
// message.
func (stx *sessionTx) appendOnce(in core.AppendMessages) (core.Appended, error) {
	if !in.Import && len(in.Messages) == 1 && in.Messages[0].ClientMessageID != "" {
		known, err := findRows[core.Message](stx.tx.Where("session_id = ? AND client_message_id = ?", stx.session.ID, in.Messages[0].ClientMessageID).Limit(1))
		if err != nil || len(known) > 0 {
			return core.Appended{Session: stx.session.Core(), Messages: known, Repeated: true}, err
		}
	}
	parent, err := stx.admitAppend(in)
	if err != nil {
		return core.Appended{}, err
	}
	first := stx.session.LastSeq + 1
	if hasSharedEvent(in) {
		_, err = stx.insertMessages(in.Messages, parent, "")
		return stx.finishAppend(in, first, nil, err)
	}
	stored, err := stx.appendMessages(in.Messages, parent, "")
	return stx.finishAppend(in, first, stored, err)
}

// hasSharedEvent reports whether one event stands for all the messages.
func hasSharedEvent(in core.AppendMessages) bool {
	return in.Import && len(in.Messages) > importEvents || !fitsOneStep(in)
}

// fitsOneStep reports whether one transaction stores all the messages.
func fitsOneStep(in core.AppendMessages) bool {
	return countStep(in.Messages, appendRows) == len(in.Messages)
}

// finishAppend completes an Append whose messages from first on are stored.
func (stx *sessionTx) finishAppend(in core.AppendMessages, first int64, stored []core.Message, err error) (core.Appended, error) {
	if err != nil {
		return core.Appended{}, err
	}
	out := core.Appended{FirstSeq: first, LastSeq: stx.session.LastSeq, Messages: stored}
	if hasSharedEvent(in) {
		stx.emitEvents(core.NewEvent("", "", core.EventMessagesImported, core.ImportedData{
			Imported: len(in.Messages), FirstSeq: out.FirstSeq, LastSeq: out.LastSeq,
		}))
	}
	out.Session, out.Events = stx.session.Core(), stx.events
	return out, nil
}

// admitAppend returns the error of messages that must not enter the log now, or the message
// that precedes them.
func (stx *sessionTx) admitAppend(in core.AppendMessages) (parent core.MessageID, err error) {
	f, err := stx.loadFacts()
	if err == nil {
		err = stx.checkNotArchived()
	}
	if err == nil && f.Active+f.Queued > 0 {
		err = core.Errorf(core.ErrConflict,
			"session %s is answering a message: an added message would separate the question from its answer; wait for its runs to end, then add the message", stx.session.ID)
	}
	if err == nil {
		err = stx.checkClientIDs(in.Messages)
	}
	parent = core.MessageID(f.ParentID)
	if err == nil && in.Branch != nil {
		if parent = *in.Branch; parent != "" {
			_, err = stx.findMessage(parent)
		}
		if err == nil {
			err = stx.switchPath(pathChange{leaf: parent, before: math.MaxInt64, why: "branch"})
		}
	}
	if err == nil && len(in.Messages) > 0 && in.Messages[0].Role == core.RoleTool {
		err = stx.checkToolResults(in.Messages)
	}
	return parent, err
}

func (stx *sessionTx) checkNotArchived() error {
	if stx.session.ArchivedAt == nil {
		return nil
	}
	return core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", stx.session.ID)
}

// checkClientIDs refuses client message ids that are in use in the session or occur twice.
func (stx *sessionTx) checkClientIDs(messages []core.Message) error {
	var ids []string
	given := map[string]bool{}
	for _, m := range messages {
		if m.ClientMessageID == "" {
			continue
		}
		if given[m.ClientMessageID] {
			return clientIDTakenError(m.ClientMessageID)
		}
		given[m.ClientMessageID] = true
		ids = append(ids, m.ClientMessageID)
	}
	for batch := range slices.Chunk(ids, maxIDs) {
		found, err := scan[[]string](stx.tx.Raw(`SELECT client_message_id FROM messages WHERE session_id = ? AND client_message_id IN ?
UNION SELECT client_message_id FROM runs WHERE session_id = ? AND client_message_id IN ?`,
			stx.session.ID, batch, stx.session.ID, batch))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return clientIDTakenError(slices.Min(found))
		}
	}
	return nil
}

// checkToolResults refuses leading tool results without an open call at the end of the
// current path.
func (stx *sessionTx) checkToolResults(messages []core.Message) error {
	var tail []core.Message
	if err := stx.tx.Raw(openCallsSQL, map[string]any{"s": stx.session.ID}).Scan(&tail).Error; err != nil {
		return err
	}
	open := map[string]int{} // how many calls there are without a result, by id
	for _, m := range tail {
		for _, c := range m.ToolCalls {
			open[c.ID]++
		}
		if m.Role == core.RoleTool {
			open[m.ToolCallID]--
		}
	}
	for _, m := range messages {
		if m.Role != core.RoleTool {
			return nil
		}
		if open[m.ToolCallID]--; open[m.ToolCallID] < 0 {
			return core.Errorf(core.ErrUnprocessable,
				"tool_call_id %s: the last messages of the session have no such call without a result", core.Clip(m.ToolCallID, 200))
		}
	}
	return nil
}

// openCallsSQL reads the last message that is neither a tool result nor of the system, and
// the tool results after it. System messages between them can be many and large.
const openCallsSQL = `SELECT role, tool_call_id, tool_calls FROM messages WHERE session_id = @s AND on_path AND role <> 'system' AND seq >= (
	SELECT COALESCE(MAX(seq), 0) FROM messages WHERE session_id = @s AND on_path AND role NOT IN ('tool', 'system')) ORDER BY seq`

// importInSteps is Append for more messages than fit into a transaction. They are written
// after the end of the log, where they are invisible; the last step moves the end.
func (r *Messages) importInSteps(ctx context.Context, tenant core.Tenant, in core.AppendMessages, note resultRecorder) (core.Appended, error) {
	if ctx.Err() != nil {
		return core.Appended{}, context.Cause(ctx)
	}
	i, err := r.beginImport(ctx, tenant, in)
	if err != nil {
		return core.Appended{}, err
	}
	done := false
	defer func() {
		if !done { // an error or a panic
			i.undo(ctx)
		}
	}()
	rest := in.Messages
	for len(rest) > 0 {
		part := rest[:countStep(rest, stepRows)]
		if err := i.runStep(ctx, func(stx *sessionTx) error { return i.storePart(stx, part) }); err != nil {
			return core.Appended{}, err
		}
		rest = rest[len(part):]
	}
	out, err := i.finishImport(ctx, in, note)
	done = err == nil
	return out, err
}

// undo removes what a failed import wrote, and makes the session available again. If that
// fails, Purges.Recover does it.
func (i *importJob) undo(ctx context.Context) {
	if i.dropImport(context.WithoutCancel(ctx)) != nil {
		i.endLease(ctx)
	}
}

// importJob is an import into a session that it keeps busy.
type importJob struct {
	*sessionLease
	parent core.MessageID // of the next message
	last   int64          // the seq before it
	first  int64          // the seq of the first message

	speakers string // of the session and the messages so far
	bytes    int64  // stored of the messages so far
}

// beginImport checks that the messages may enter the log, and makes the session busy.
func (r *Messages) beginImport(ctx context.Context, tenant core.Tenant, in core.AppendMessages) (*importJob, error) {
	i := &importJob{}
	_, err := changeLog(ctx, r.db, in.SessionID, func(stx *sessionTx) (err error) {
		if i.parent, err = stx.admitAppend(in); err != nil {
			return err
		}
		i.last, i.first, i.speakers = stx.session.LastSeq, stx.session.LastSeq+1, stx.session.Speakers
		i.sessionLease, err = stx.acquireLease(r.db, busyImport, in.Worker)
		return err
	}, visibleTo(tenant))
	return i, err
}

func (i *importJob) finishImport(ctx context.Context, in core.AppendMessages, note resultRecorder) (out core.Appended, err error) {
	err = i.runStep(ctx, func(stx *sessionTx) error {
		if err := stx.checkNotArchived(); err != nil { // archived since the first step
			return err
		}
		stx.clearBusy()
		stx.extendLog(len(in.Messages))
		stx.session.Speakers = i.speakers
		stx.session.StoredBytes += i.bytes
		if out, err = stx.finishAppend(in, i.first, nil, nil); err == nil {
			err = stx.saveChanges()
		}
		if err != nil {
			return err
		}
		return note(stx.tx, fmt.Sprintf(appendResultFormat, out.FirstSeq, out.LastSeq))
	})
	return out, err
}

func (i *importJob) storePart(stx *sessionTx, part []core.Message) error {
	stx.session.LastSeq, stx.session.Speakers, stx.session.StoredBytes = i.last, i.speakers, i.bytes
	stored, err := stx.insertMessages(part, i.parent, "")
	if err != nil {
		return err
	}
	i.parent, i.last, i.speakers, i.bytes = stored[len(stored)-1].ID, stx.session.LastSeq, stx.session.Speakers, stx.session.StoredBytes
	return nil
}

// countStep returns how many of the messages one step stores: at most rows, and at most 1
// MiB of text unless a single one has more.
func countStep(messages []core.Message, rows int) int {
	n, bytes := 0, int64(0)
	for n < min(rows, len(messages)) {
		if bytes += messages[n].StoredBytes() - core.StoredRow; n > 0 && bytes > appendBytes {
			break
		}
		n++
	}
	return n
}
