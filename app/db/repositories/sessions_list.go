package repositories

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// sessionList is an order of sessions.
type sessionList struct {
	name          string // in cursors
	column        string
	withSummaries bool // with the texts of summaries
	timeOf        func(core.Session) time.Time
}

// newestFirstSQL is the order by the column, total by the id.
func (l sessionList) newestFirstSQL() string { return l.column + " DESC, id DESC" }

// sessionListOf returns the list for the query.
func sessionListOf(q core.SessionQuery) sessionList {
	if q.Order == core.OrderByCreation {
		return sessionList{"sessions-created", "created_at", q.Summaries, func(s core.Session) time.Time { return s.CreatedAt }}
	}
	return sessionList{"sessions", "updated_at", q.Summaries, func(s core.Session) time.Time { return s.UpdatedAt }}
}

// List returns the sessions in the scope besides temporary ones, ordered by last activity or by
// creation, newest first, or by how well the text fits. ErrInvalid for a cursor of another list and for a text that cannot be searched
// for.
func (r *Sessions) List(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if q.Order == core.OrderByRelevance {
		return r.listRanked(ctx, tenant, q)
	}
	none := core.Page[core.Session]{}
	list := sessionListOf(q)
	limit, after, err := pageStart(q.Limit, q.Cursor, list.name)
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Where(visibleTo(tenant))
	if after.isSet() {
		db = db.Where("("+list.column+", id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	db = db.Where("NOT temporary")
	if db, err = filterSessions(db, tenant, q); err != nil {
		return none, err
	}
	if q.Limit = limit; q.Text != "" {
		NewSearch(r.db).indexScope(ctx, tenant, "")
	}
	db = withNarrowIndex(db.Model(&models.Session{}), tenant, q)
	rows, limit, err := list.findSessions(db.Session(&gorm.Session{}), tenant, q)
	if err != nil {
		return none, wrapError(err, "sessions of", tenant.Owner)
	}
	return pageOf(mapRows(rows, sessionRow.toCore), limit, func(s core.Session) position {
		return position{List: list.name, N: list.timeOf(s).UnixMicro(), ID: string(s.ID)}
	}), nil
}

// findSessions returns the first q.Limit sessions, or fewer if they exceed the byte limit,
// and how many these are; plus the one after them, if there is one. Archived and other
// sessions have separate indexes, so that each query skips no rows of the other kind.
func (l sessionList) findSessions(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) ([]sessionRow, int, error) {
	active, archived := db.Where("archived_at IS NULL"), db.Where("archived_at IS NOT NULL")
	bytes := cmp.Or(q.Bytes, core.MaxPageBytes)
	switch {
	case q.Text != "" && q.Archived:
		rows, err := l.sessionsWith(db, tenant, q)
		return rows, q.Limit, err
	case q.Text != "":
		rows, err := l.sessionsWith(active, tenant, q)
		return rows, q.Limit, err
	case !q.Archived:
		return l.findSome(active, q.Limit, bytes)
	}
	rows, limit, err := l.findSome(active, q.Limit, bytes/2)
	if err != nil {
		return nil, 0, err
	}
	more, limit, err := l.findSome(archived, limit, bytes/2)
	rows = append(rows, more...)
	slices.SortFunc(rows, func(a, b sessionRow) int {
		return cmp.Or(l.timeOf(b.Session.Session).Compare(l.timeOf(a.Session.Session)), cmp.Compare(b.ID, a.ID))
	})
	return rows[:min(limit+1, len(rows))], limit, err
}

// findSome returns the first sessions of a list, like findSessions.
func (l sessionList) findSome(list *gorm.DB, limit int, bytes int64) (rows []sessionRow, _ int, err error) {
	list = list.Order(l.newestFirstSQL()).Session(&gorm.Session{})
	long := longSessionColumns()
	if l.withSummaries {
		long.texts = append(long.texts, "conversation_summary")
		long.jsons = append(long.jsons, "prompt_state", "native_summary")
	}
	limit, err = fitRows(list, long, limit, bytes)
	if err == nil {
		err = list.Scopes(selectSessions(l.withSummaries)).Limit(limit + 1).Find(&rows).Error
	}
	return rows, limit, err
}

// filterSessions narrows a list of sessions to the query, except for its text.
func filterSessions(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) (*gorm.DB, error) {
	if q.Agent != "" {
		db = db.Where("agent = ?", q.Agent)
	}
	if q.UserID != "" {
		db = db.Where("user_id = ? AND user_id <> ''", q.UserID)
	}
	if q.Pinned != nil { // a literal, as the partial indexes have it
		db = db.Where(map[bool]string{true: "pinned", false: "NOT pinned"}[*q.Pinned])
	}
	if q.Slack {
		db = db.Where("id IN (SELECT session_id FROM slack_threads WHERE owner = ? AND ? = '')", tenant.Owner, tenant.User)
	}
	db = inRange(inRange(db, "created_at", q.CreatedAfter, q.CreatedBefore), "updated_at", q.UpdatedAfter, q.UpdatedBefore)
	const active = "id IN (SELECT r.session_id FROM runs r WHERE r.status IN ('running', 'waiting') AND r.owner = ?"
	const queued = "id IN (SELECT r.session_id FROM runs r WHERE r.status = 'queued' AND r.status IN ('queued', 'running') AND r.owner = ?)"
	switch q.Status { // few runs are unfinished, and partial indexes cover them
	case core.SessionRunning, core.SessionWaiting:
		db = db.Where(active+" AND r.status = ?)", tenant.Owner, string(q.Status))
	case core.SessionQueued:
		db = db.Where(queued+" AND NOT "+active+")", tenant.Owner, tenant.Owner)
	case core.SessionIdle:
		db = db.Where("NOT "+queued+" AND NOT "+active+")", tenant.Owner, tenant.Owner)
	}
	if q.Tag != "" {
		if isPostgres(db) {
			db = db.Where("tags @> jsonb_build_array(CAST(? AS text))", q.Tag)
		} else {
			db = db.Where("EXISTS (SELECT 1 FROM json_each(sessions.tags) t WHERE t.value = ?)", q.Tag)
		}
	}
	return withMetadata(db, q.Metadata)
}

// withNarrowIndex names the index that leads to the few sessions that pass a filter: SQLite,
// without statistics, would look through all sessions of the owner in the order of the list.
// Searches begin with what matches their text.
func withNarrowIndex(db *gorm.DB, tenant core.Tenant, q core.SessionQuery) *gorm.DB {
	index := ""
	switch {
	case isPostgres(db) || q.Text != "":
	case q.Slack, q.Status != "" && q.Status != core.SessionIdle:
		index = "sqlite_autoindex_sessions_1" // of the ids, which come from threads or runs
	case q.Pinned != nil && *q.Pinned && cmp.Or(tenant.User, q.UserID) != "":
		index = "sessions_user_pinned"
	case q.Pinned != nil && *q.Pinned:
		index = "sessions_pinned"
	}
	if index == "" {
		return db
	}
	return db.Table("sessions INDEXED BY " + index)
}

// inRange narrows a list to rows in a time range; a zero time is no bound.
func inRange(db *gorm.DB, column string, after, before time.Time) *gorm.DB {
	if !after.IsZero() {
		db = db.Where(column+" >= ?", after.UTC())
	}
	if !before.IsZero() {
		db = db.Where(column+" < ?", before.UTC())
	}
	return db
}

// withMetadata narrows a list of sessions to those whose metadata have all members of an
// object: strings, numbers and booleans.
func withMetadata(db *gorm.DB, raw json.RawMessage) (*gorm.DB, error) {
	if len(raw) == 0 {
		return db, nil
	}
	var members map[string]any
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, core.Errorf(core.ErrInvalid, "metadata must be a JSON object")
	}
	if isPostgres(db) {
		return db.Where("metadata @> CAST(? AS jsonb)", string(raw)), nil
	}
	const member = "EXISTS (SELECT 1 FROM json_each(sessions.metadata) e WHERE e.key = ? AND "
	for key, value := range members {
		switch v := value.(type) {
		case string:
			db = db.Where(member+"e.type = 'text' AND e.value = ?)", key, v)
		case float64:
			db = db.Where(member+"e.type IN ('integer', 'real') AND e.value = ?)", key, v)
		case bool:
			db = db.Where(member+"e.type = ?)", key, map[bool]string{true: "true", false: "false"}[v])
		default:
			return nil, core.Errorf(core.ErrInvalid, "metadata can be filtered by strings, numbers and booleans")
		}
	}
	return db, nil
}

// sessionRow is a session with the state of its runs.
type sessionRow struct {
	models.Session `gorm:"embedded"`

	Runs models.SessionRuns `gorm:"embedded;embeddedPrefix:runs_"`
}

// activeRunSQL selects from the active run of a session; the index runs_one_active has it.
const activeRunSQL = "FROM runs r WHERE r.session_id = sessions.id AND r.status IN ('running', 'waiting')"

// sessionRunsSQL are the columns of a models.SessionRuns: a few index entries for each
// session.
const sessionRunsSQL = "(SELECT r.id " + activeRunSQL + ") AS runs_active_id, " +
	"COALESCE((SELECT r.status " + activeRunSQL + "), '') AS runs_active_status, " +
	"(SELECT r.id FROM runs r WHERE r.session_id = sessions.id AND r.status = 'queued' ORDER BY r.queue_seq LIMIT 1) AS runs_next_id, " +
	"(SELECT COUNT(*) FROM approvals a WHERE a.status = 'open' AND a.run_id = (SELECT r.id " + activeRunSQL + ")) AS runs_open_approvals"

// selectSessions selects sessions with the state of their runs, with or without summary texts and prompt states. It names
// the columns: a migration may add some while statements are prepared.
func selectSessions(withTexts bool) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		var columns []string
		for _, column := range columnsOf(db, &models.Session{}) {
			if withTexts || !slices.Contains([]string{"conversation_summary", "native_summary", "prompt_state"}, column) {
				columns = append(columns, "sessions."+column)
			}
		}
		return db.Select(strings.Join(columns, ", ") + ", " + sessionRunsSQL)
	}
}

// toCore returns the session.
func (r sessionRow) toCore() core.Session {
	s := r.Session.Core()
	r.Runs.Apply(&s)
	return s
}

// sessionWithRuns returns the session as it will be after the commit, with the state of its
// runs.
func (stx *sessionTx) sessionWithRuns() (core.Session, error) {
	s := stx.session.Core()
	var runs struct {
		models.SessionRuns `gorm:"embedded;embeddedPrefix:runs_"`
	}
	err := stx.tx.Table("sessions").Where("id = ?", stx.session.ID).Select(sessionRunsSQL).Take(&runs).Error
	runs.Apply(&s)
	return s, err
}

// sessionWithRun returns the session as it will be while the run that was just started is
// active, without a query.
func (stx *sessionTx) sessionWithRun(run core.Run) core.Session {
	s := stx.session.Core()
	models.SessionRuns{ActiveID: models.Ref(run.ID), ActiveStatus: string(run.Status)}.Apply(&s)
	return s
}

// headColumns are what a head shows, without columns that may be long.
const headColumns = "sessions.id, owner, title, agent, user_id, source, pinned, temporary, message_count, last_event_seq, updated_at, archived_at, "

// Heads returns the heads of those of the sessions that are in the scope.
func (r *Events) Heads(ctx context.Context, tenant core.Tenant, sessions []core.SessionID) ([]core.SessionHead, error) {
	db := r.db.WithContext(ctx)
	rows, err := findRows[sessionRow](db.Model(&models.Session{}).Where(visibleTo(tenant)).Select(headColumns+sessionRunsSQL).Where("sessions.id IN ?", sessions).Order("updated_at, id"))
	if err != nil {
		return nil, wrapError(err, "sessions of", tenant.Owner)
	}
	heads, waiting := make([]core.SessionHead, 0, len(rows)), []core.RunID{}
	for _, row := range rows {
		s := row.toCore()
		heads = append(heads, core.SessionHead{
			ID: s.ID, Title: s.Title, Agent: s.Agent, UserID: s.UserID, Source: s.Source, Status: s.Status, Pinned: s.Pinned, Archived: s.ArchivedAt != nil,
			Temporary: s.Temporary, MessageCount: s.MessageCount, LastEvent: s.LastEventSeq, UpdatedAt: s.UpdatedAt,
		})
		if s.OpenApprovals > 0 {
			waiting = append(waiting, s.ActiveRunID)
		}
	}
	if len(waiting) == 0 {
		return heads, nil
	}
	var open []core.Approval
	err = db.Select("id", "run_id", "session_id", "tool").Where("run_id IN ? AND status = ?", waiting, core.ApprovalOpen).Order("requested_at DESC, id DESC").Find(&open).Error
	first := map[core.SessionID]*core.WaitingFor{}
	for _, a := range open { // the first one comes last
		first[a.SessionID] = &core.WaitingFor{RunID: a.RunID, ApprovalID: a.ID, Tool: a.Tool}
	}
	for i := range heads {
		heads[i].Waiting = first[heads[i].ID]
	}
	return heads, wrapError(err, "approvals of", tenant.Owner)
}
