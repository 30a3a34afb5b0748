package repositories

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db"
	"bobbin/app/db/models"
)

// Write stores one step of a run: messages, events, model calls, and the run's state. It
// returns core.ErrStale and stores nothing unless w.Attempt is the run's current attempt
// and the run is running. Events are numbered in this order: message.created for each new
// message, w.Events, approval.requested for each new question, and the event of the run's
// end or wait.
//
// A tool message also finishes the execution of its call. Storing messages, waiting, or
// ending the run clears its partial text, which is then in the log.
func (r *Runs) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	if err := conversation.CheckWrite(w); err != nil {
		return core.Written{}, err
	}
	changes, err := runChanges(w)
	if err != nil {
		return core.Written{}, err
	}
	var (
		out   core.Written
		fence fencedRun
		hooks []models.OwnerWebhook
	)
	lock := sessionLock{id: w.SessionID, with: func(dry *gorm.DB) []*gorm.DB {
		all := []*gorm.DB{fence.buildUpdate(dry, w, changes)}
		if w.End != nil {
			hooks = nil
			all = append(all, dry.Where("owner = (SELECT owner FROM sessions WHERE id = ?)", w.SessionID).Limit(1).Find(&hooks))
		}
		return all
	}}
	err = changeLogWith(ctx, r.db, lock, func(stx *sessionTx) (err error) {
		stx.later = db.DeferWrites(stx.tx)
		if w.End != nil {
			stx.ownerHooks = &hooks
		}
		out, err = stx.storeWrite(w, fence)
		return err
	})
	if isNotFound(err) {
		err = conversation.StaleRun(w.RunID)
	}
	if err != nil {
		return core.Written{}, wrapError(err, "run", w.RunID)
	}
	return out, nil
}

// storeWrite is Write with the session locked.
func (stx *sessionTx) storeWrite(w core.RunWrite, fence fencedRun) (core.Written, error) {
	if fence.result.RowsAffected == 0 || fence.row.SessionID != stx.session.ID {
		return stx.repeatedWrite(w)
	}
	run, err := fence.row.Core()
	if err != nil {
		return core.Written{}, err
	}
	stored, err := stx.appendNew(w)
	if err != nil {
		return core.Written{}, err
	}
	if err := stx.finishTools(run.ID, w.Messages); err != nil {
		return core.Written{}, err
	}
	if err := stx.recordCalls(w.ModelCalls, run.ID); err != nil {
		return core.Written{}, err
	}
	for _, e := range w.Events {
		e.RunID = cmp.Or(e.RunID, run.ID)
		stx.emitEvents(e)
	}
	if w.Setup != nil {
		err = stx.storeSetup(*w.Setup)
	}
	if err == nil && w.Wait != nil {
		run, err = stx.storeWait(run.ID, *w.Wait)
	}
	if err == nil && w.End != nil {
		err = stx.reportEvent(conversation.EndEvent(run))
	}
	if w.Wait != nil || w.End != nil {
		stx.setUpdatedAt()
	}
	if err == nil {
		err = stx.saveChanges()
	}
	return core.Written{Messages: stored, Events: stx.events, Run: run, MoreQueued: stx.session.LastQueueSeq > run.QueueSeq}, err
}

// storeWait lets a run wait, and returns it as it is then.
func (stx *sessionTx) storeWait(run core.RunID, w core.RunWait) (core.Run, error) {
	s, err := stx.loadState(run)
	if err != nil {
		return core.Run{}, err
	}
	c, err := conversation.Wait(s, w)
	if err == nil {
		err = stx.storeChange(c)
	}
	return c.Run, err
}

// fencedRun is the run of a write after its row was updated.
type fencedRun struct {
	row    models.Run
	result *gorm.DB
}

// buildUpdate returns the statement that updates the run's row if the attempt still owns it.
func (f *fencedRun) buildUpdate(dry *gorm.DB, w core.RunWrite, changes map[string]any) *gorm.DB {
	ours := dry.Model(&models.Run{}).Clauses(returningAll(dry, &models.Run{})).
		Where("id = ? AND attempt = ? AND status = 'running'", w.RunID, w.Attempt)
	if w.ID != "" {
		ours = ours.Where("last_write <> ?", w.ID)
	}
	f.row = models.Run{}
	f.result = db.ScanInto(ours.UpdateColumns(changes), &f.row)
	return f.result
}

// runChanges returns the columns that a write sets; there is always one.
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
	if w.End != nil {
		changes["status"] = string(w.End.Status)
		changes["error"] = models.RunErrorFrom(w.End.Error)
		changes["finished_at"] = core.Now()
		changes["lease_owner"], changes["lease_until"] = "", nil
		if w.End.AnswerID != "" {
			changes["answer_id"] = models.Ref(w.End.AnswerID)
		}
	}
	if w.ID != "" {
		changes["last_write"] = w.ID
	}
	return storableChanges(changes)
}

// appendNew appends the messages that are not in the log yet, and returns all of them as
// stored.
func (stx *sessionTx) appendNew(w core.RunWrite) ([]core.Message, error) {
	if len(w.Messages) == 0 {
		return nil, nil
	}
	messages := core.WithIDs(w.Messages)
	if w.LastEvent > 0 && w.LastEvent == stx.session.LastEventSeq {
		return stx.appendMessages(messages, w.LastMessage, w.RunID)
	}
	known, parent, err := stx.findLogged(messages)
	if err != nil {
		return nil, err
	}
	fresh := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		if _, ok := known[m.ID]; !ok {
			fresh = append(fresh, m)
		}
	}
	added, err := stx.appendMessages(fresh, parent, w.RunID)
	if err != nil {
		return nil, err
	}
	for _, m := range added {
		known[m.ID] = m
	}
	return inOrder(messages, known), nil
}

// inOrder returns the stored messages in the order of the given ones.
func inOrder(messages []core.Message, stored map[core.MessageID]core.Message) []core.Message {
	out := make([]core.Message, 0, len(messages))
	for _, m := range messages {
		out = append(out, stored[m.ID])
	}
	return out
}

// findLogged returns those of the messages that are in the log, and the last message on the
// path. It queries by id alone: with the session as a second condition a planner may scan
// all messages of the session, as PostgreSQL does until it has statistics.
func (stx *sessionTx) findLogged(messages []core.Message) (map[core.MessageID]core.Message, core.MessageID, error) {
	ids := make([]core.MessageID, 0, len(messages))
	for _, m := range messages {
		if err := requireID("message", m.ID); err != nil {
			return nil, "", core.Errorf(core.ErrInvalid, "the message id %q is not a UUID", m.ID)
		}
		ids = append(ids, m.ID)
	}
	var rows []models.Message
	err := stx.tx.Where("id IN ? OR id = (SELECT l.id FROM messages l WHERE l.session_id = ? AND l.on_path ORDER BY l.seq DESC LIMIT 1)",
		ids, stx.session.ID).Order("seq").Find(&rows).Error
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
		if row.SessionID != stx.session.ID {
			return nil, "", core.Errorf(core.ErrConflict, "message %s belongs to another session", m.ID)
		}
		known[m.ID] = m
		if m.OnPath {
			last = m.ID
		}
	}
	return known, last, nil
}

// repeatedWrite returns the result of a write that was already committed, when its reply was
// lost; ErrStale for any other that the run's row refused. Its events are
// among the newest of the run; older ones in the list do no harm, as watchers know their
// numbers.
func (stx *sessionTx) repeatedWrite(w core.RunWrite) (core.Written, error) {
	var row models.Run
	found := stx.tx.Where("id = ? AND session_id = ? AND attempt = ? AND last_write = ? AND last_write <> ''", w.RunID, stx.session.ID, w.Attempt, w.ID).Limit(1).Find(&row)
	if found.Error == nil && found.RowsAffected == 0 {
		return core.Written{}, conversation.StaleRun(w.RunID)
	}
	if found.Error != nil {
		return core.Written{}, found.Error
	}
	run, err := row.Core()
	if err != nil {
		return core.Written{}, err
	}
	stored, err := stx.storedMessages(w.Messages)
	if err != nil {
		return core.Written{}, err
	}
	events, err := newestEvents(stx.tx, w)
	return core.Written{Messages: stored, Events: events, Run: run, MoreQueued: stx.session.LastQueueSeq > run.QueueSeq}, err
}

// storedMessages returns the messages as they are in the log.
func (stx *sessionTx) storedMessages(messages []core.Message) ([]core.Message, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	known, _, err := stx.findLogged(messages)
	if err != nil {
		return nil, err
	}
	return inOrder(messages, known), nil
}

// newestEvents returns as many of the run's newest events as the write can have emitted, in
// order.
func newestEvents(tx *gorm.DB, w core.RunWrite) ([]core.Event, error) {
	maxEvents := len(w.Messages) + len(w.Events) + 1
	if w.Wait != nil {
		maxEvents += len(w.Wait.Approvals)
	}
	var rows []models.Event
	err := tx.Where("session_id = ? AND run_id = ?", w.SessionID, w.RunID).Order("event_seq DESC").Limit(maxEvents).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	slices.Reverse(rows)
	return renderEvents(tx, w.SessionID, rows)
}

// SavePartial stores the partial text of the answer, for readers that come when no process
// streams it. Like Write it returns core.ErrStale for an attempt that is over.
func (r *Runs) SavePartial(ctx context.Context, id core.RunID, attempt int, text string) error {
	changes, err := storableChanges(map[string]any{"partial": text})
	if err != nil {
		return err
	}
	return r.updateAttempt(ctx, id, attempt, changes)
}
