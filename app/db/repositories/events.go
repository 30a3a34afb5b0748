package repositories

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Events reads the durable events of sessions; they are written with what they report. Safe
// for concurrent use.
type Events struct{ db *gorm.DB }

// NewEvents returns the events in db.
func NewEvents(db *gorm.DB) *Events { return &Events{db: db} }

// After returns up to limit events with a number greater than afterSeq, in order. Messages, runs and
// the session in them have their present state, without deleted content; runs the status of the event. The
// caller must have checked access to the session.
func (r *Events) After(ctx context.Context, session core.SessionID, afterSeq int64, limit int) ([]core.Event, error) {
	db := byID(ctx, r.db, "session", session)
	rows, err := findRows[models.Event](db.Where("session_id = ? AND event_seq > ?", session, afterSeq).
		Order("event_seq").Limit(limit))
	if err != nil {
		return nil, wrapError(err, "events of session", session)
	}
	events, err := renderEvents(db, session, rows)
	return events, wrapError(err, "events of session", session)
}

// Page returns the first events with a number greater than afterSeq, in order: at most
// limit, and at most core.MaxPageBytes together, but at least one. More reports whether
// others may follow. The caller must have checked access to the session.
func (r *Events) Page(ctx context.Context, session core.SessionID, afterSeq int64, limit int) (page []core.Event, more bool, err error) {
	list := byID(ctx, r.db, "session", session).Model(&models.Event{}).Where("session_id = ? AND event_seq > ?", session, afterSeq).
		Order("event_seq").Session(&gorm.Session{})
	n, err := fitRows(list, longEventColumns(list), limit, core.MaxPageBytes)
	if err != nil {
		return nil, false, wrapError(err, "events of session", session)
	}
	page, err = r.After(ctx, session, afterSeq, n)
	return page, len(page) == n, err
}

// LastOf returns the numbers of the newest events of the sessions of any owner, without
// sessions that do not exist. The caller must have checked access.
func (r *Events) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	var rows []models.Session
	if err := r.db.WithContext(ctx).Select("id", "last_event_seq").Where("id IN ?", sessions).Find(&rows).Error; err != nil {
		return nil, wrapError(err, "sessions", "")
	}
	newest := make(map[core.SessionID]int64, len(rows))
	for _, row := range rows {
		newest[row.ID] = row.LastEventSeq
	}
	return newest, nil
}

// Last returns the number of the newest event, 0 if there is none yet.
func (r *Events) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (int64, error) {
	row, err := takeRow[models.Session](byID(ctx, r.db, "session", session).Select("last_event_seq").Where(visibleTo(tenant)).Where("id = ?", session), "session", session)
	return row.LastEventSeq, err
}

// Events and runs refer to rows stored elsewhere: the message of an event or a run to the
// log, the run and the session of an event to their rows. Readers get their present state, so
// that deleted content is nowhere.

// eventReference is stored in place of the data of an event about a message, a run or the session. What an
// event about a run leaves out is that of the run at its end.
type eventReference struct {
	MessageID models.Ref       `json:"message_id,omitempty"`
	Attempt   int              `json:"attempt,omitempty"` // of the run
	Usage     core.Usage       `json:"usage,omitzero"`    // likewise
	Path      *core.PathChange `json:"path,omitempty"`
	Slack     core.SlackChange `json:"slack,omitzero"`
	Bytes     int              `json:"bytes"` // of the event's data
}

func (stx *sessionTx) emitMessage(kind core.EventType, m core.Message) {
	stx.emitEvents(core.NewEvent(m.SessionID, m.RunID, kind, core.MessageData{Message: m}))
}

// emitSession emits what changed in the session, with the session as it will be. Run is the run that
// caused the change; empty = none.
func (stx *sessionTx) emitSession(run core.RunID, d core.SessionData) (err error) {
	if d.Session, err = stx.sessionWithRuns(); err != nil {
		return err
	}
	d.Session.ConversationSummary = nil
	stx.emitEvents(core.NewEvent("", run, core.EventSessionUpdated, d))
	return nil
}

// emitSlack emits that the session was attached to the thread of Slack; nil = detached.
func (stx *sessionTx) emitSlack(thread *core.SlackThread) error {
	return stx.emitSession("", core.SessionData{Slack: core.SlackChange{Changed: true, Thread: thread}})
}

// referenceOf returns what is stored in place of an event's data of that size; nil = the data.
func referenceOf(e core.Event, size int) *eventReference {
	switch d := e.Data.(type) {
	case core.MessageData:
		return &eventReference{MessageID: models.Ref(d.Message.ID), Bytes: size}
	case core.SessionData:
		return &eventReference{Path: d.Path, Slack: d.Slack, Bytes: size}
	case core.RunData:
		if e.Type.EndsRun() {
			return &eventReference{Bytes: size}
		}
		return &eventReference{Attempt: d.Run.Attempt, Usage: d.Run.Usage, Bytes: size}
	}
	return nil
}

// storedEvent is an event as it is stored.
type storedEvent struct {
	core.Event

	ref eventReference // zero if it has data, or those of another version
}

// renderEvents returns the events of a session as they are published, with their references
// resolved.
func renderEvents(db *gorm.DB, session core.SessionID, rows []models.Event) ([]core.Event, error) {
	stored := mapRows(rows, func(row models.Event) storedEvent {
		e := storedEvent{Event: row.Core()}
		switch e.Data.(type) {
		case core.MessageData, core.RunData, core.SessionData:
			_ = json.Unmarshal(row.Data, &e.ref) // others have no size
		}
		return e
	})
	messages, runs, err := findReferred(db, stored)
	if err != nil {
		return nil, err
	}
	events := make([]core.Event, 0, len(rows))
	var current *core.Session
	for _, s := range stored {
		e, ref := s.Event, s.ref
		if ref.Bytes > 0 {
			e.Size = ref.Bytes
		}
		switch _, isSession := e.Data.(core.SessionData); {
		case ref.MessageID != "":
			m := messages[ref.MessageID]
			if e.Type == core.EventRunQueued && m.RunID == e.RunID { // as it was: a queued message has no place in the log
				m.Seq, m.ParentID, m.OnPath = 0, "", true
			}
			if e.Data = (core.MessageData{Message: m}); m.RevisedAt != nil {
				e.Size += len(m.Content)
			}
		case isSession:
			if current == nil {
				if current, err = loadSession(db, session); err != nil {
					return nil, err
				}
			}
			e.Data = core.SessionData{Session: *current, Path: ref.Path, Slack: ref.Slack}
		case runs[e.RunID].ID != "" && isAboutRun(e):
			e.Data = core.RunData{Run: runAt(e, ref, runs[e.RunID])}
		}
		events = append(events, e)
	}
	return events, nil
}

// runAt returns the run as it was at an event about it, as far as that is known.
func runAt(e core.Event, ref eventReference, run core.Run) core.Run {
	run.Input = run.Input.Emptied()
	if e.Type.EndsRun() {
		return run
	}
	run.Status, run.Attempt, run.Usage = core.RunRunning, ref.Attempt, ref.Usage
	if e.Type == core.EventRunWaiting {
		run.Status = core.RunWaiting
	} else {
		run.Context = nil // of a prompt that is to come
	}
	run.CancelRequested, run.Error, run.AnswerID, run.FinishedAt = false, nil, "", nil
	return run
}

func isAboutRun(e core.Event) bool {
	_, ok := e.Data.(core.RunData)
	return ok
}

// longReference is a size in bytes that no reference reaches.
const longReference = "1024"

// longEventColumns are the columns of events that may be long, with their references:
// messages as they were at the time of the event and their texts as edited since, the session
// as it is now.
func longEventColumns(db *gorm.DB) longColumns {
	const reference = "CASE WHEN octet_length(CAST(data AS text)) > " + longReference + " THEN 0 " +
		"WHEN type LIKE 'run.%%' OR type IN ('message.created', 'message.updated') THEN CAST(data ->> 'bytes' AS bigint) + %s " +
		"WHEN type = 'session.updated' THEN (SELECT %s FROM sessions s WHERE s.id = session_events.session_id) END"
	id := "data ->> 'message_id'"
	if isPostgres(db) {
		id = "CAST(" + id + " AS uuid)"
	}
	revised := "COALESCE((SELECT octet_length(m.content) FROM messages m WHERE m.id = " + id + " AND m.revised_at IS NOT NULL), 0)"
	return longColumns{jsons: []string{"data"}, related: []string{fmt.Sprintf(reference, revised, longSessionColumns().sumSQL(db))}}
}

// findReferred returns the messages and the runs that events refer to. Messages that are not in the log are
// those of their runs.
func findReferred(db *gorm.DB, events []storedEvent) (map[models.Ref]core.Message, map[core.RunID]core.Run, error) {
	var ids, needed []models.Ref
	runOf := map[models.Ref]models.Ref{}
	for _, e := range events {
		if id := e.ref.MessageID; id != "" {
			ids, runOf[id] = append(ids, id), models.Ref(e.RunID)
		} else if isAboutRun(e.Event) {
			needed = append(needed, models.Ref(e.RunID))
		}
	}
	list, err := findIn[core.Message](db, "id", ids)
	if err != nil {
		return nil, nil, err
	}
	messages, runs := make(map[models.Ref]core.Message, len(ids)), map[core.RunID]core.Run{}
	for _, m := range list {
		messages[models.Ref(m.ID)] = m
	}
	for id, run := range runOf {
		if _, ok := messages[id]; !ok && run != "" {
			needed = append(needed, run)
		}
	}
	slices.Sort(needed)
	found, err := findIn[models.Run](db, "id", slices.Compact(needed))
	for _, row := range found {
		run := row.Core()
		runs[run.ID] = run
		if id := models.Ref(run.UserMessageID); messages[id].ID == "" {
			messages[id] = run.UserMessage()
		}
	}
	return messages, runs, err
}

// loadSession returns the session without its summary; an empty one if it was removed
// meanwhile.
func loadSession(db *gorm.DB, id core.SessionID) (*core.Session, error) {
	session := core.Session{ID: id, Status: core.SessionIdle}
	row, err := findFirst[sessionRow](db.Model(&models.Session{}).Scopes(selectSessions(false)).Where("id = ?", id))
	if row != nil {
		session = row.toCore()
	}
	return &session, err
}

// runRow is a run with the message that it answers, if that is in the log.
type runRow struct {
	models.Run `gorm:"embedded"`

	Message core.Message `gorm:"embedded;embeddedPrefix:message_"`
}

// findRuns returns the runs of the query in the given order, with their inputs: these are
// in the log as soon as their messages are.
func findRuns(db, which *gorm.DB, order string) ([]core.Run, error) {
	rows, err := findRows[runRow](db.Table("(?) AS r", which.Model(&models.Run{}).Order(order)).
		Joins("LEFT JOIN messages m ON m.id = r.user_message_id").
		Select("r.*, m.id AS message_id, COALESCE(m.content, '') AS message_content, m.parts AS message_parts, COALESCE(m.author, '') AS message_author, " +
			"m.metadata AS message_metadata, COALESCE(m.token_count, 0) AS message_token_count, m.deleted_at AS message_deleted_at").
		Order(order))
	if err != nil {
		return nil, err
	}
	return mapRows(rows, runRow.toCore), nil
}

func findRun(db, which *gorm.DB) (core.Run, error) {
	runs, err := findRuns(db, which, "session_id") // ordered by another index, PostgreSQL may look through all runs
	if err == nil && len(runs) == 0 {
		err = gorm.ErrRecordNotFound
	}
	if err != nil {
		return core.Run{}, err
	}
	return runs[0], nil
}

// toCore returns the run. Runs of earlier versions store their input themselves.
func (r runRow) toCore() core.Run {
	run := r.Run.Core()
	if r.Message.ID != "" && run.Input.Empty() && !run.Input.Regenerate {
		run.SetInput(r.Message)
	}
	return run
}
