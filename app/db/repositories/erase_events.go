package repositories

import (
	"encoding/json"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// erased is what a deletion took away.
type erased struct {
	messages []core.Message  // as they are now
	calls    map[string]bool // ids of their tool calls
	versions map[int]bool    // of summaries that covered them
	title    *string         // the session's now, if one was made of them; nil = none was
}

// eventsPage is how many events are read at a time.
const eventsPage = 200

// eraseEvents replaces the messages that were deleted, the summaries that covered
// them and the title that was made of them, in the events: whoever reads those again
// sees what is left.
func (j *journal) eraseEvents(e erased) error {
	redact := e.redacter()
	for last := int64(0); ; {
		var rows []models.Event
		err := j.tx.Where("session_id = ? AND event_seq > ?", j.session.ID, last).Where(j.tx.Where(e.where(j.tx))).
			Order("event_seq").Limit(eventsPage).Find(&rows).Error
		if err != nil {
			return err
		}
		for _, row := range rows {
			last = row.EventSeq
			data, ok := redact(row.Core())
			if !ok {
				continue
			}
			if err := j.rewrite(row, data); err != nil {
				return err
			}
		}
		if len(rows) < eventsPage {
			return nil
		}
	}
}

// rewrite gives an event other data.
func (j *journal) rewrite(row models.Event, data json.RawMessage) error {
	return j.tx.Model(&models.Event{}).Where("session_id = ? AND event_seq = ?", row.SessionID, row.EventSeq).
		UpdateColumn("data", models.JSON(data)).Error
}

// where narrows a question about events to those in which something of it may be.
func (e erased) where(tx *gorm.DB) *gorm.DB {
	which := tx.Where("type = 'session.updated' AND ?", len(e.versions) > 0 || e.title != nil)
	if len(e.messages) > few {
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

// redacter returns redacted with the messages at hand.
func (e erased) redacter() func(core.Event) (json.RawMessage, bool) {
	gone := make(map[core.MessageID]*core.Message, len(e.messages))
	for i := range e.messages {
		gone[e.messages[i].ID] = &e.messages[i]
	}
	return func(event core.Event) (json.RawMessage, bool) { return e.redacted(event, gone) }
}

// redacted returns the data of an event without what was deleted, and false if
// nothing of that is in it.
func (e erased) redacted(event core.Event, gone map[core.MessageID]*core.Message) (json.RawMessage, bool) {
	switch event.Type {
	case core.EventRunQueued, core.EventMessageCreated, core.EventMessageUpdated:
		return changed(event, func(d *core.MessageData) bool {
			m := gone[d.Message.ID]
			if m != nil {
				d.Message = *m
			}
			return m != nil
		})
	case core.EventRunStarted, core.EventRunWaiting, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		return changed(event, func(d *core.RunData) bool {
			d.Run.Input = emptied(d.Run.Input)
			return gone[d.Run.UserMessageID] != nil
		})
	case core.EventToolStarted:
		return changed(event, func(d *core.ToolStartedData) bool {
			d.Arguments = ""
			return e.calls[d.ToolCallID]
		})
	case core.EventToolFinished:
		return changed(event, func(d *core.ToolFinishedData) bool {
			d.Preview = ""
			return e.calls[d.ToolCallID]
		})
	case core.EventApprovalRequested, core.EventApprovalDecided:
		return changed(event, func(d *core.ApprovalData) bool {
			d.Approval.Arguments, d.Approval.Comment = "", ""
			return e.calls[d.Approval.ToolCallID]
		})
	case core.EventSessionUpdated:
		return changed(event, func(d *core.SessionData) bool {
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

// changed returns the event's data with the change, and false if the change says
// that it does not apply.
func changed[T any](e core.Event, change func(*T) bool) (json.RawMessage, bool) {
	var data T
	if json.Unmarshal(e.Data, &data) != nil || !change(&data) {
		return nil, false
	}
	return core.NewEvent(e.SessionID, e.RunID, e.Type, data).Data, true
}
