package repositories

import (
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// erasure is what a deletion or an edit erased.
type erasure struct {
	messages []core.Message  // as they are now
	calls    map[string]bool // ids of their tool calls
	versions map[int]bool    // of summaries that covered them
	title    *string         // the session's now, if one was generated from them; else nil
}

// eventsPage is how many events one query reads.
const eventsPage = 200

// eraseEvents erases the deleted content from the events that contain it. These are events
// of tools of the messages' runs; other events contain messages, summaries and titles only
// if an earlier version wrote them.
func (stx *sessionTx) eraseEvents(e erasure) error {
	redact := e.newRedaction()
	if stx.session.FullEventSeq > 0 {
		err := stx.redactEvents(redact, func(db *gorm.DB) *gorm.DB {
			return db.Where("event_seq <= ?", stx.session.FullEventSeq).Where(stx.tx.Where(e.matchingEvents(stx.tx)))
		}, nil)
		if err != nil {
			return err
		}
	}
	if len(e.calls) == 0 {
		return nil
	}
	runs, err := stx.runsOf(e.messages)
	for _, run := range runs {
		if err == nil {
			err = stx.redactRun(redact, run)
		}
	}
	return err
}

// redactRun redacts the events of a run that has ended, between its first one and its end.
func (stx *sessionTx) redactRun(redact redaction, run models.Run) error {
	of := func(db *gorm.DB) *gorm.DB {
		return db.Where("event_seq > ? AND type IN ?", max(run.FirstEventSeq-1, stx.session.FullEventSeq), []core.EventType{
			core.EventToolStarted, core.EventToolFinished, core.EventApprovalRequested, core.EventApprovalDecided,
			core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled,
		})
	}
	return stx.redactEvents(redact, of, func(row models.Event) bool {
		if core.EventType(row.Type).EndsRun() {
			return string(row.RunID) == run.ID
		}
		// Retention may have removed the event of its end.
		return run.FinishedAt != nil && row.At.After(run.FinishedAt.Add(time.Minute))
	})
}

// runsOf returns the runs of the messages.
func (stx *sessionTx) runsOf(messages []core.Message) ([]models.Run, error) {
	var ids []models.Ref
	for _, m := range messages {
		if m.RunID != "" {
			ids = append(ids, models.Ref(m.RunID))
		}
	}
	slices.Sort(ids)
	return findIn[models.Run](stx.tx.Select("id", "first_event_seq", "finished_at"), "id", slices.Compact(ids))
}

// redaction returns the data of an event without the deleted content, and false if it
// contains none.
type redaction func(core.Event) (any, bool)

// redactEvents redacts events of the session in order, until last reports true.
func (stx *sessionTx) redactEvents(redact redaction, which func(*gorm.DB) *gorm.DB, last func(models.Event) bool) error {
	for after := int64(0); ; {
		var rows []models.Event
		err := stx.tx.Where("session_id = ? AND event_seq > ?", stx.session.ID, after).Scopes(which).Order("event_seq").Limit(eventsPage).Find(&rows).Error
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.EventSeq
			if data, ok := redact(row.Core()); ok {
				if err := stx.replaceEventData(row, data); err != nil {
					return err
				}
			}
			if last != nil && last(row) {
				return nil
			}
		}
		if len(rows) < eventsPage {
			return nil
		}
	}
}

// replaceEventData replaces the data of an event.
func (stx *sessionTx) replaceEventData(row models.Event, data any) error {
	stored, err := models.EventData(data)
	if err != nil {
		return err
	}
	return stx.tx.Model(&models.Event{}).Where("session_id = ? AND event_seq = ?", row.SessionID, row.EventSeq).
		UpdateColumn("data", stored).Error
}

// maxIDConditions bounds the messages that are searched for by id; with more of them all
// events are read.
const maxIDConditions = 16

// matchingEvents narrows a query to events that may contain some of the erased content.
func (e erasure) matchingEvents(tx *gorm.DB) *gorm.DB {
	which := tx.Where("type = 'session.updated' AND ?", len(e.versions) > 0 || e.title != nil)
	if len(e.messages) > maxIDConditions {
		return which.Or("type LIKE 'run.%' OR type LIKE 'message.%' OR type LIKE 'tool.%' OR type LIKE 'approval.%'")
	}
	for _, m := range e.messages {
		which = which.Or("CAST(data AS text) LIKE ?", "%"+string(m.ID)+"%")
		if m.RunID != "" && len(e.calls) > 0 {
			which = which.Or("type IN ('tool.started', 'tool.finished', 'approval.requested', 'approval.decided') AND run_id = ?", m.RunID)
		}
	}
	return which
}

// newRedaction returns redactEvent for the erased messages.
func (e erasure) newRedaction() redaction {
	gone := make(map[core.MessageID]*core.Message, len(e.messages))
	for i := range e.messages {
		gone[e.messages[i].ID] = &e.messages[i]
	}
	return func(event core.Event) (any, bool) { return e.redactEvent(event, gone) }
}

// redactEvent returns the data of an event without the deleted content, and false if it
// contains none.
func (e erasure) redactEvent(event core.Event, gone map[core.MessageID]*core.Message) (any, bool) {
	switch event.Type {
	case core.EventRunQueued, core.EventMessageCreated, core.EventMessageUpdated: // a reference has no such id
		return changeEventData(event, func(d *core.MessageData) bool {
			m := gone[d.Message.ID]
			if m != nil {
				d.Message = *m
			}
			return m != nil
		})
	case core.EventRunStarted, core.EventRunWaiting, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		return changeEventData(event, func(d *core.RunData) bool {
			d.Run.Input = d.Run.Input.Emptied()
			return gone[d.Run.UserMessageID] != nil
		})
	case core.EventToolStarted:
		return changeEventData(event, func(d *core.ToolStartedData) bool {
			d.Arguments = ""
			return e.calls[d.ToolCallID]
		})
	case core.EventToolFinished:
		return changeEventData(event, func(d *core.ToolFinishedData) bool {
			d.Preview = ""
			return e.calls[d.ToolCallID]
		})
	case core.EventApprovalRequested, core.EventApprovalDecided:
		return changeEventData(event, func(d *core.ApprovalData) bool {
			d.Approval.Arguments, d.Approval.Edited, d.Approval.Comment = "", "", ""
			return e.calls[d.Approval.ToolCallID]
		})
	case core.EventSessionUpdated: // a reference has no id
		return changeEventData(event, func(d *core.SessionData) bool {
			if d.Session.ID == "" {
				return false
			}
			covered := e.versions[d.Session.SummaryVersion]
			if covered {
				d.Session.ConversationSummary = nil
			}
			if e.title != nil {
				d.Session.Title = *e.title
			}
			return covered || e.title != nil
		})
	}
	return nil, false
}

// changeEventData returns the event's data with the change, and false if change reports
// that it does not apply.
func changeEventData[T any](e core.Event, change func(*T) bool) (any, bool) {
	data, ok := e.Data.(T)
	if !ok || !change(&data) {
		return nil, false
	}
	return data, true
}
