package repositories

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// Write stores one step of a run: messages, events, model calls, and the run's state. It
// returns core.ErrStale and stores nothing unless w.Attempt is the run's current attempt
// and the run is running. Events are numbered in this order: message.created for each new
// message, w.Events, message.updated for each mark, approval.requested for each new question,
// and the event of the run's end or wait.
//
// A tool message also finishes the execution of its call. Storing messages, waiting, or
// ending the run clears its partial text, which is then in the log.
func (r *Runs) Write(ctx context.Context, w core.RunWrite) (core.Written, error) {
	if err := conversation.CheckWrite(w); err != nil {
		return core.Written{}, err
	}
	var out core.Written
	write := func(stx *sessionTx) (err error) {
		out, err = stx.storeWrite(w)
		return err
	}
	var err error
	if w.Wait != nil || w.Setup != nil { // they need the lock
		_, err = changeLog(ctx, r.db, w.SessionID, write)
	} else {
		db := r.db.WithContext(ctx)
		known, _ := w.Known.(*loadedSession)
		if w.End != nil && w.End.Status == core.RunCanceled { // the cancel has changed the run
			known = nil
		}
		err = shareLog(db, w.SessionID, sessionSource{known, func() *gorm.DB { return commit.Text(db, r.writeSQL, string(w.SessionID), string(w.RunID)) }}, write) //nolint:contextcheck // the handle has it
	}
	if isNotFound(err) {
		err = conversation.StaleRun(w.RunID)
	}
	return out, wrapError(err, "run", w.RunID)
}

// storeWrite is Write in a transaction, or as a change.
func (stx *sessionTx) storeWrite(w core.RunWrite) (core.Written, error) {
	var row models.Run
	if stx.loaded != nil {
		row = stx.loaded.Run
	} else if err := stx.tx.Where("id = ? AND session_id = ?", w.RunID, w.SessionID).Limit(1).Find(&row).Error; err != nil {
		return core.Written{}, err
	}
	if row.Attempt != w.Attempt || row.Status != core.RunRunning || w.ID != "" && row.LastWrite == w.ID {
		return stx.repeatedWrite(w)
	}
	if owned, err := stx.updateOwnedRun(&row, w); err != nil || !owned {
		return core.Written{}, cmp.Or(err, conversation.StaleRun(w.RunID))
	}
	run := row.Core()
	var last core.MessageID // on the path; empty = not known
	known, onlyWriter := w.Known.(*loadedSession)
	if onlyWriter = onlyWriter && known.LastEventSeq == stx.session.LastEventSeq; onlyWriter {
		last = core.MessageID(known.Facts.ParentID)
	}
	stored, err := stx.appendNew(w, last)
	if err != nil {
		return core.Written{}, err
	}
	if n := len(stored); n > 0 {
		last = stored[n-1].ID
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
	isMarked, err := stx.markRefused(run, w)
	if err != nil {
		return core.Written{}, err
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
	out := core.Written{Messages: stored, Events: stx.events, Run: run, MoreQueued: stx.session.LastQueueSeq > run.QueueSeq}
	if onlyWriter && !isMarked {
		out.Known = stx.knownAfter(row, last)
	}
	return out, err
}

// markRefused marks the run's user message if a provider refused its prompt or cut its answer off, and tells watchers. What a
// filter refused is as what others did once something follows it: a step of a tool loop, or another answer.
func (stx *sessionTx) markRefused(run core.Run, w core.RunWrite) (isMarked bool, err error) {
	var mark core.FinishReason
	marked := stx.tx.Where("session_id = ?", run.SessionID)
	switch {
	case w.End == nil:
	case w.End.Error != nil:
		mark = map[string]core.FinishReason{"model_content_filter": core.FinishContentFilter, "model_invalid": core.FinishRefused}[w.End.Error.Code]
	case len(w.Messages) > 0 && w.Messages[len(w.Messages)-1].FinishReason == core.FinishContentFilter:
		mark = core.FinishRefused
	case run.Input.Regenerate && w.End.AnswerID != "":
		mark, marked = core.FinishRefused, marked.Where("finish_reason = ?", core.FinishContentFilter)
	}
	if mark == "" {
		return false, nil
	}
	rows, err := findIn[core.Message](marked, "id", []core.MessageID{run.UserMessageID})
	for _, m := range rows {
		if mark == core.FinishContentFilter || m.FinishReason == core.FinishContentFilter {
			following, err := count(stx.tx.Model(&core.Message{}).Where("parent_id = ? AND role <> 'user'", m.ID))
			if mark = core.FinishContentFilter; err != nil {
				return false, err
			} else if following > 0 {
				mark = core.FinishRefused
			}
		}
		m.FinishReason = mark
		stx.emitMessage(core.EventMessageUpdated, m)
		err = stx.tx.Model(&m).UpdateColumn("finish_reason", mark).Error
	}
	return len(rows) > 0, err
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

// updateOwnedRun updates the run if the attempt owns it: now, or with the change.
func (stx *sessionTx) updateOwnedRun(row *models.Run, w core.RunWrite) (owned bool, err error) {
	u := commit.Run{Write: w.ID, State: models.JSON(w.State), Context: models.JSON(w.Context), Usage: w.Usage}
	if len(w.Messages) > 0 || w.Wait != nil || w.End != nil {
		u.Partial = new(string)
	}
	if w.Next != "" {
		partial, err := core.Draft{Attempt: w.Attempt, MessageID: w.Next}.Encode()
		if err != nil {
			return false, err
		}
		u.Partial = &partial
	}
	if w.End != nil {
		now := core.Now()
		row.Status, row.Error, row.FinishedAt, row.LeaseOwner, row.LeaseUntil = w.End.Status, w.End.Error, &now, "", nil
		row.AnswerID = cmp.Or(w.End.AnswerID, row.AnswerID)
	}
	if u.State != nil {
		row.State = w.State
	}
	if u.Context != nil {
		row.Context = w.Context
	}
	if u.Partial != nil {
		row.Partial = *u.Partial
	}
	row.LastWrite, row.Usage = cmp.Or(w.ID, row.LastWrite), row.Usage.Add(w.Usage)
	u.Row = *row
	return stx.change.UpdateRun(u)
}

// appendNew appends the messages that are not in the log yet, and returns all of them as
// stored. If the last message on the path is known, none is in the log.
func (stx *sessionTx) appendNew(w core.RunWrite, last core.MessageID) ([]core.Message, error) {
	if len(w.Messages) == 0 {
		return nil, nil
	}
	messages := core.WithIDs(w.Messages)
	if last != "" {
		return stx.appendMessages(messages, last, w.RunID)
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
	rows, err := findRows[core.Message](stx.read.Where("id IN ? OR id = (SELECT l.id FROM messages l WHERE l.session_id = ? AND l.on_path ORDER BY l.seq DESC LIMIT 1)",
		ids, stx.session.ID).Order("seq"))
	if err != nil {
		return nil, "", err
	}
	known := map[core.MessageID]core.Message{}
	var last core.MessageID
	for _, m := range rows {
		if m.SessionID != stx.session.ID {
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
	row, err := findFirst[models.Run](stx.tx.Where("id = ? AND session_id = ? AND attempt = ? AND last_write = ? AND last_write <> ''", w.RunID, stx.session.ID, w.Attempt, w.ID))
	if err != nil || row == nil {
		return core.Written{}, cmp.Or(err, conversation.StaleRun(w.RunID))
	}
	run := row.Core()
	out := core.Written{Run: run, MoreQueued: stx.session.LastQueueSeq > run.QueueSeq}
	if len(w.Messages) > 0 {
		known, _, err := stx.findLogged(w.Messages)
		if err != nil {
			return core.Written{}, err
		}
		out.Messages = inOrder(w.Messages, known)
	}
	n := len(w.Messages) + len(w.Events) + 1 // at most so many events
	if w.Wait != nil {
		n += len(w.Wait.Approvals)
	}
	var rows []models.Event
	if err := stx.tx.Where("session_id = ? AND run_id = ?", w.SessionID, w.RunID).Order("event_seq DESC").Limit(n).Find(&rows).Error; err != nil {
		return core.Written{}, err
	}
	slices.Reverse(rows)
	out.Events, err = renderEvents(stx.tx, w.SessionID, rows)
	return out, err
}

// SavePartial stores the partial text of the answer, for readers that come when no process
// streams it. Like Write it returns core.ErrStale for an attempt that is over.
func (r *Runs) SavePartial(ctx context.Context, id core.RunID, attempt int, text string) error {
	return r.updateAttempt(ctx, id, attempt, map[string]any{"partial": text})
}

// StartTools commits that tools are about to start that must not run twice. A call that
// already has a row starts again: the caller has decided so. Like Write it returns
// core.ErrStale for an attempt that is over.
func (r *Runs) StartTools(ctx context.Context, id core.RunID, attempt int, list []core.ToolExecution) error {
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		run, err := findRows[models.Run](tx.Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate}).
			Where("id = ? AND attempt = ? AND status = 'running'", id, attempt))
		if err != nil {
			return err
		}
		if len(run) == 0 {
			return conversation.StaleRun(id)
		}
		rows := make([]core.ToolExecution, 0, len(list))
		known := map[string]bool{}
		for _, e := range list {
			if known[e.CallID] {
				continue
			}
			known[e.CallID] = true
			e.RunID, e.SessionID = core.RunID(run[0].ID), core.SessionID(run[0].SessionID)
			e.Owner, e.Attempt, e.FinishedAt = run[0].Owner, run[0].Attempt, nil
			if e.StartedAt.IsZero() {
				e.StartedAt = core.Now()
			}
			rows = append(rows, e)
		}
		if len(rows) == 0 {
			return nil
		}
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "run_id"}, {Name: "call_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"attempt", "tool", "started_at", "finished_at"}),
		}).Create(&rows).Error
	})
	return wrapError(err, "run", id)
}

// ToolExecutions returns the executions of a run in the order in which they started. One
// without FinishedAt, of an attempt that is over, was interrupted: its effect is unknown.
func (r *Runs) ToolExecutions(ctx context.Context, id core.RunID) ([]core.ToolExecution, error) {
	list, err := findRows[core.ToolExecution](byID(ctx, r.db, "run", id).Where("run_id = ?", id).Order("started_at, call_id"))
	return list, wrapError(err, "run", id)
}

// finishTools marks the executions of the calls that the messages answer as finished.
func (stx *sessionTx) finishTools(run core.RunID, messages []core.Message) error {
	const finish = "UPDATE tool_executions SET finished_at = % WHERE run_id = % AND call_id = % AND finished_at IS NULL"
	var err error
	for _, m := range messages {
		if m.Role == core.RoleTool && m.ToolCallID != "" && err == nil {
			_, err = stx.change.Update(finish, "timestamptz uuid text", core.Now(), string(run), m.ToolCallID)
		}
	}
	return err
}
