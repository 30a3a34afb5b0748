package repositories

import (
	"encoding/json"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// erased is what a deletion took away.
type erased struct {
	messages []core.Message  // as they are now
	calls    map[string]bool // ids of their tool calls
	versions map[int]bool    // of summaries that covered them
}

// eraseEvents replaces the messages that were deleted, and the summaries that
// covered them, in the events: whoever reads those again sees what is left.
func (j *journal) eraseEvents(e erased) error {
	which := j.tx.Where("type = 'session.updated' AND ?", len(e.versions) > 0)
	for _, m := range e.messages {
		which = which.Or("CAST(data AS text) LIKE ?", "%"+string(m.ID)+"%")
		if m.RunID != "" && len(e.calls) > 0 {
			which = which.Or("type IN ('tool.started', 'tool.finished') AND run_id = ?", m.RunID)
		}
	}
	var rows []models.Event
	if err := j.tx.Where("session_id = ?", j.session.ID).Where(which).Find(&rows).Error; err != nil {
		return err
	}
	for _, row := range rows {
		data, ok := e.redacted(row.Core())
		if !ok {
			continue
		}
		err := j.tx.Model(&models.Event{}).Where("session_id = ? AND event_seq = ?", row.SessionID, row.EventSeq).
			UpdateColumn("data", models.JSON(data)).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// redacted returns the data of an event without what was deleted, and false if
// nothing of that is in it.
func (e erased) redacted(event core.Event) (json.RawMessage, bool) {
	switch event.Type {
	case core.EventRunQueued, core.EventMessageCreated, core.EventMessageUpdated:
		return changed(event, func(d *core.MessageData) bool {
			m := e.message(d.Message.ID)
			if m != nil {
				d.Message = *m
			}
			return m != nil
		})
	case core.EventRunStarted, core.EventRunWaiting, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		return changed(event, func(d *core.RunData) bool {
			d.Run.Input = emptied(d.Run.Input)
			return e.message(d.Run.UserMessageID) != nil
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
	case core.EventSessionUpdated:
		return changed(event, func(d *core.SessionData) bool {
			d.Session.ConversationSummary = nil
			return e.versions[d.Session.SummaryVersion]
		})
	}
	return nil, false
}

// message returns the message of that id as it is now; nil if it was not deleted.
func (e erased) message(id core.MessageID) *core.Message {
	for i := range e.messages {
		if e.messages[i].ID == id {
			return &e.messages[i]
		}
	}
	return nil
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
