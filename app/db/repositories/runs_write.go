package repositories

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Write stores one step of a run: messages, events, model calls, and how the run
// stands. It is refused with core.ErrStale, and stores nothing, unless w.Attempt is
// the run's current one and the run is running. The events are numbered in this
// order: message.created of each new message, then w.Events, then approval.requested
// of each new question, then the event of the run's end or of its waiting.
//
// A tool message also finishes the execution of the call that it answers. Storing
// messages, waiting, or ending the run clears its partial text: it is in the log now.
func (r *Runs) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	if err := checkWrite(w); err != nil {
		return core.Written{}, err
	}
	var out core.Written
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, w.SessionID)
		if isNotFound(err) {
			return stale(w.RunID)
		}
		if err != nil {
			return err
		}
		out, err = j.write(w)
		return err
	})
	if err != nil {
		return core.Written{}, failure(err, "run", w.RunID)
	}
	return out, nil
}

func stale(id core.RunID) error {
	return core.Errorf(core.ErrStale, "run %s is not this worker's any more", id)
}

func checkWrite(w core.RunWrite) error {
	switch {
	case !core.ValidID(w.RunID):
		return stale(w.RunID)
	case len(w.State) > core.MaxRunState:
		return core.Errorf(core.ErrInvalid, "the state of run %s has %d bytes, at most %d are kept", w.RunID, len(w.State), core.MaxRunState)
	case w.End != nil && !w.End.Status.Ended():
		return core.Errorf(core.ErrInvalid, "run %s cannot end as %q", w.RunID, w.End.Status)
	case w.Wait != nil && (w.End != nil || len(w.Wait.Approvals) == 0):
		return core.Errorf(core.ErrInvalid, "run %s cannot wait for nothing, nor end while it waits", w.RunID)
	}
	return nil
}

// write is Write, with the session locked.
func (j *journal) write(w core.RunWrite) (core.Written, error) {
	run, err := j.fence(w)
	if errors.Is(err, errWritten) {
		return j.again(w)
	}
	if err != nil {
		return core.Written{}, err
	}
	if w.Wait != nil && run.CancelRequested {
		return core.Written{}, core.Errorf(core.ErrCanceled, "run %s is to be canceled", w.RunID)
	}
	stored, err := j.addNew(w.Messages, run.ID)
	if err != nil {
		return core.Written{}, err
	}
	if err := j.finishTools(run.ID, w.Messages); err != nil {
		return core.Written{}, err
	}
	if err := j.book(w.ModelCalls, run.ID); err != nil {
		return core.Written{}, err
	}
	for _, e := range w.Events {
		if e.RunID == "" {
			e.RunID = run.ID
		}
		j.emit(e)
	}
	if w.Wait != nil {
		if err := j.wait(run, *w.Wait); err != nil {
			return core.Written{}, err
		}
		j.touch()
	}
	if w.End != nil {
		if err := j.report(run, endEvent(w.End.Status)); err != nil {
			return core.Written{}, err
		}
		j.touch()
	}
	if err := j.close(); err != nil {
		return core.Written{}, err
	}
	return core.Written{Messages: stored, Events: j.events, Run: run}, nil
}

func endEvent(s core.RunStatus) core.EventType {
	switch s {
	case core.RunSucceeded:
		return core.EventRunSucceeded
	case core.RunFailed:
		return core.EventRunFailed
	}
	return core.EventRunCanceled
}

// fence changes the run's row, if it is still the writer's, and returns the run.
func (j *journal) fence(w core.RunWrite) (core.Run, error) {
	changes, err := runChanges(w)
	if err == nil {
		changes, err = checked(changes)
	}
	if err != nil {
		return core.Run{}, err
	}
	var row models.Run
	ours := j.tx.Model(&row).Clauses(clause.Returning{Columns: runColumns(j.tx)}).
		Where("id = ? AND attempt = ? AND status = 'running'", w.RunID, w.Attempt)
	if w.ID != "" {
		changes["last_write"] = w.ID
		ours = ours.Where("last_write <> ?", w.ID)
	}
	res := ours.UpdateColumns(changes)
	if res.Error != nil {
		return core.Run{}, res.Error
	}
	if res.RowsAffected == 0 || row.SessionID != j.session.ID {
		return core.Run{}, j.refusal(w)
	}
	return row.Core()
}

// runChanges are the columns that a write sets; there is always one.
func runChanges(w core.RunWrite) (map[string]any, error) {
	changes := map[string]any{}
	for column, n := range map[string]int{
		"input_tokens": w.Usage.InputTokens, "output_tokens": w.Usage.OutputTokens,
		"reasoning_tokens": w.Usage.ReasoningTokens, "cache_read_tokens": w.Usage.CacheReadTokens,
		"cache_write_tokens": w.Usage.CacheWriteTokens,
	} {
		changes[column] = gorm.Expr(column+" + ?", n)
	}
	if w.State != nil {
		changes["state"] = models.JSON(w.State)
	}
	if w.Context != nil {
		changes["context"] = models.JSON(w.Context)
	}
	if len(w.Messages) > 0 || w.Wait != nil || w.End != nil {
		changes["partial"] = ""
	}
	if w.Next != "" {
		partial, err := core.Draft{Attempt: w.Attempt, MessageID: w.Next}.Encode()
		if err != nil {
			return nil, err
		}
		changes["partial"] = partial
	}
	if w.Wait != nil {
		changes["status"] = string(core.RunWaiting)
		changes["lease_owner"], changes["lease_until"] = "", nil
	}
	if w.End != nil {
		changes["status"] = string(w.End.Status)
		changes["error"] = models.RunErrorFrom(w.End.Error)
		changes["finished_at"] = core.Now()
		changes["lease_owner"], changes["lease_until"] = "", nil
	}
	if w.End != nil && w.End.AnswerID != "" {
		changes["answer_id"] = models.Ref(w.End.AnswerID)
	}
	return changes, nil
}

// addNew appends those messages that are not in the log yet, and returns all of
// them as they are stored.
func (j *journal) addNew(messages []core.Message, run core.RunID) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	messages = core.WithIDs(messages)
	known, parent, err := j.logged(messages)
	if err != nil {
		return nil, err
	}
	fresh := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		if _, ok := known[m.ID]; !ok {
			fresh = append(fresh, m)
		}
	}
	added, err := j.add(fresh, parent, run)
	if err != nil {
		return nil, err
	}
	for _, m := range added {
		known[m.ID] = m
	}
	return inOrder(messages, known), nil
}

// inOrder returns the messages as they are stored.
func inOrder(messages []core.Message, stored map[core.MessageID]core.Message) []core.Message {
	out := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		out = append(out, stored[m.ID])
	}
	return out
}

// logged returns those of the messages that the log has, and the last message on
// the path. Ids alone are asked for, not the session: with both a planner may
// prefer to look through all messages of the session, as PostgreSQL does until it
// has statistics.
func (j *journal) logged(messages []core.Message) (map[core.MessageID]core.Message, core.MessageID, error) {
	ids := make([]core.MessageID, 0, len(messages))
	for _, m := range messages {
		if err := known("message", m.ID); err != nil {
			return nil, "", core.Errorf(core.ErrInvalid, "the message id %q is not a UUID", m.ID)
		}
		ids = append(ids, m.ID)
	}
	var rows []models.Message
	err := j.tx.Where("id IN ? OR id = (SELECT l.id FROM messages l WHERE l.session_id = ? AND l.on_path ORDER BY l.seq DESC LIMIT 1)",
		ids, j.session.ID).Order("seq").Find(&rows).Error
	if err != nil {
		return nil, "", err
	}
	known := map[core.MessageID]core.Message{}
	var last core.MessageID
	for _, row := range rows {
		m, err := row.Core()
		if err != nil {
			return nil, "", err
		}
		if row.SessionID != j.session.ID {
			return nil, "", core.Errorf(core.ErrConflict, "message %s belongs to another session", m.ID)
		}
		known[m.ID] = m
		if m.OnPath {
			last = m.ID
		}
	}
	return known, last, nil
}

// SavePartial keeps the text on its way, for readers that come while nobody can be
// asked. Like Write it is refused with core.ErrStale for an attempt that is over.
func (r *Runs) SavePartial(ctx context.Context, id core.RunID, attempt int, text string) error {
	if err := known("run", id); err != nil {
		return stale(id)
	}
	changes, err := checked(map[string]any{"partial": text})
	if err != nil {
		return err
	}
	res := r.running(ctx).Where("id = ? AND attempt = ?", id, attempt).UpdateColumns(changes)
	if res.Error == nil && res.RowsAffected == 0 {
		return stale(id)
	}
	return failure(res.Error, "run", id)
}
