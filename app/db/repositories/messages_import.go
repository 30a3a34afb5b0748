package repositories

import (
	"context"
	"fmt"

	"bobbin/app/core"
)

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
	out, err := i.writeAll(ctx, in, note)
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
	bytes    int64  // stored of them
}

// beginImport checks that the messages may enter the log, and makes the session busy.
func (r *Messages) beginImport(ctx context.Context, tenant core.Tenant, in core.AppendMessages) (*importJob, error) {
	i := &importJob{}
	err := changeLog(ctx, r.db, in.SessionID, func(stx *sessionTx) (err error) {
		if i.parent, err = stx.admitAppend(in); err != nil {
			return err
		}
		i.last, i.first, i.speakers, i.bytes = stx.session.LastSeq, stx.session.LastSeq+1, stx.session.Speakers, stx.session.StoredBytes
		i.sessionLease, err = stx.acquireLease(r.db, busyImport, in.Worker)
		return err
	}, visibleTo(tenant))
	return i, err
}

// writeAll stores the messages, and adds them to the log when all are stored.
func (i *importJob) writeAll(ctx context.Context, in core.AppendMessages, note resultRecorder) (core.Appended, error) {
	rest := in.Messages
	for rows := firstRows; len(rest) > 0; {
		part := rest[:countStep(rest, rows)]
		if err := i.runStep(ctx, func(stx *sessionTx) error { return i.storePart(stx, part) }); err != nil {
			return core.Appended{}, err
		}
		if len(part) == rows {
			rows = i.nextRows(rows)
		}
		rest = rest[len(part):]
	}
	return i.finishImport(ctx, in, note)
}

// finishImport adds the messages to the log.
func (i *importJob) finishImport(ctx context.Context, in core.AppendMessages, note resultRecorder) (out core.Appended, err error) {
	err = i.runStep(ctx, func(stx *sessionTx) error {
		if err := stx.checkNotArchived(); err != nil { // archived since the first step
			return err
		}
		stx.clearBusy()
		stx.extendLog(len(in.Messages))
		stx.session.Speakers, stx.session.StoredBytes = i.speakers, i.bytes
		if err := stx.recountInstructions(); err != nil {
			return err
		}
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

// storePart stores a part of the messages.
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
	n, bytes := 0, 0
	for n < min(rows, len(messages)) {
		if bytes += messageBytes(messages[n]); n > 0 && bytes > appendBytes {
			break
		}
		n++
	}
	return n
}

// messageBytes estimates the size of a message.
func messageBytes(m core.Message) int {
	n := len(m.Content) + len(m.Metadata)
	for _, r := range m.Revisions {
		n += len(r.Content)
	}
	for _, p := range m.Parts {
		n += len(p.Text)
	}
	for _, c := range m.ToolCalls {
		n += len(c.Arguments)
	}
	return n
}
