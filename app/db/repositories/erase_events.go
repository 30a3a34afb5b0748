package repositories

import (
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// erasure is what a deletion or an edit erased.
type erasure struct {
	messages []core.Message  // as they are now
	calls    map[string]bool // ids of their tool calls
}

// eventsPage is how many events one query reads.
const eventsPage = 200

// eraseEvents erases the deleted content from the events of tools of the messages' runs. Other
// events refer to messages, and contain none.
func (stx *sessionTx) eraseEvents(e erasure) error {
	if len(e.calls) == 0 {
		return nil
	}
	var ids []models.Ref
	for _, m := range e.messages {
		if m.RunID != "" {
			ids = append(ids, models.Ref(m.RunID))
		}
	}
	slices.Sort(ids)
	runs, err := findIn[models.Run](stx.tx.Select("id", "first_event_seq", "finished_at"), "id", slices.Compact(ids))
	for _, run := range runs {
		if err == nil {
			err = stx.redactRun(e, run)
		}
	}
	return err
}

// redactRun redacts the events of a run that has ended, between its first one and its end.
func (stx *sessionTx) redactRun(e erasure, run models.Run) error {
	for after := run.FirstEventSeq - 1; ; {
		var rows []models.Event
		err := stx.tx.Where("session_id = ? AND event_seq > ? AND type IN ?", stx.session.ID, after, []core.EventType{
			core.EventToolStarted, core.EventToolFinished, core.EventApprovalRequested, core.EventApprovalDecided,
			core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled,
		}).Order("event_seq").Limit(eventsPage).Find(&rows).Error
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.EventSeq
			if data, ok := e.redactEvent(row.Core()); ok {
				if err := stx.replaceEventData(row, data); err != nil {
					return err
				}
			}
			if isLastOf(run, row) {
				return nil
			}
		}
		if len(rows) < eventsPage {
			return nil
		}
	}
}

// isLastOf reports whether no event of the run follows.
func isLastOf(run models.Run, row models.Event) bool {
	if core.EventType(row.Type).EndsRun() {
		return string(row.RunID) == run.ID
	}
	// Retention may have removed the event of its end.
	return run.FinishedAt != nil && row.At.After(run.FinishedAt.Add(time.Minute))
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

// redactEvent returns the data of an event without the deleted content, and false if it
// contains none.
func (e erasure) redactEvent(event core.Event) (any, bool) {
	switch event.Type {
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
