package repositories

import (
	"context"
	"errors"
	"maps"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Runs stores runs and everything that happens during them. Safe for concurrent use, by any
// number of replicas.
//
// The methods are in files by the stage of a run's life: this one reads, then
// runs_accept.go, runs_claim.go, leases.go, runs_write.go and approvals.go.
type Runs struct {
	db      *gorm.DB
	reserve *gorm.DB      // for leases, and drafts of SQLite
	first   chan struct{} // who has such a draft: one at a time, so that others write between two

	acceptSQL, writeSQL string // load a session for Accept and for Write
}

// NewRuns returns the runs in db.
func NewRuns(db *gorm.DB) *Runs {
	columns := "SELECT " + namedColumns(db, &models.Session{}, "sessions", "") + ", "
	return &Runs{
		db: db, reserve: db, first: make(chan struct{}, 1),
		acceptSQL: columns + factsColumns(db) + " FROM sessions WHERE id = $1 AND owner = $2 AND ($5 = '' OR user_id = $5) AND " + visibleSQL,
		writeSQL: columns + namedColumns(db, &models.Run{}, "r", "its_") + ", w.url AS hook_url, w.secret AS hook_secret FROM sessions" +
			" LEFT JOIN runs r ON r.id = $2 AND r.session_id = sessions.id LEFT JOIN owner_webhooks w ON w.owner = sessions.owner WHERE sessions.id = $1",
	}
}

// WithReserve returns the runs with a separate handle for renewing leases and finding work,
// which does not wait for the connections of requests (db.DB.Reserve).
func (r *Runs) WithReserve(reserve *gorm.DB) *Runs {
	with := *r
	with.reserve = reserve
	return &with
}

// Get returns the run; a waiting one with its open approvals.
func (r *Runs) Get(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	db := byID(ctx, r.db, "run", id)
	which := db.Where("owner = ? AND id = ?", tenant.Owner, id)
	if tenant.User != "" {
		which = which.Where("EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session_id AND sessions.user_id = ?)", tenant.User)
	}
	run, err := findRun(db, which)
	if run.Status == core.RunWaiting {
		run.Approvals, err = approvals(db.Where("run_id = ? AND status = 'open'", id))
	}
	return run, wrapError(err, "run", id)
}

// Repeated returns the run that a client_message_id began in a session.
func (r *Runs) Repeated(ctx context.Context, tenant core.Tenant, session core.SessionID, clientMessageID string) (core.Run, error) {
	db := r.db.WithContext(ctx)
	run, err := findRun(db, db.Where(withinSession(tenant, session)).Where("client_message_id = ?", clientMessageID))
	return run, wrapError(err, "run of client_message_id", clientMessageID)
}

// List returns the runs of a session, the newest first, with their approvals, decided or not.
func (r *Runs) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	db := byID(ctx, r.db, "session", session)
	newest := keyset[core.Run]{list: "runs", column: "queue_seq", find: func(rows *gorm.DB) ([]core.Run, error) { return findRuns(db, rows, "queue_seq DESC") }}
	page, err := findPage(db.Model(&models.Run{}).Where(withinSession(tenant, session)), newest, q, longRunColumns(db), func(r core.Run) position { return position{N: r.QueueSeq} })
	if err == nil && len(page.Items) == 0 {
		err = requireVisible(db, tenant, session)
	}
	if err == nil {
		err = addApprovals(db, page.Items, func(r *core.Run) (core.RunID, *[]core.Approval) { return r.ID, &r.Approvals })
	}
	return page, wrapError(err, "session", session)
}

// longRunColumns are the columns of runs that may be long, with those of their messages.
func longRunColumns(db *gorm.DB) longColumns {
	return longColumns{
		texts: []string{"partial"}, jsons: []string{"input", "options", "context", "error"},
		related: []string{"(SELECT " + longMessageColumns().sumSQL(db) + " FROM messages m WHERE m.id = runs.user_message_id)"},
	}
}

// Pending returns the queued runs of a session in the order in which they will start: as
// many as fit into core.MaxPageBytes, at least one.
func (r *Runs) Pending(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Run, error) {
	db := byID(ctx, r.db, "session", session)
	var runs []core.Run
	list := db.Model(&models.Run{}).Where(withinSession(tenant, session)).Where("status = 'queued'").Session(&gorm.Session{})
	limit, err := fitRows(list.Order("queue_seq"), longRunColumns(db), core.MaxPageLimit, core.MaxPageBytes)
	if err == nil {
		runs, err = findRuns(db, list.Limit(limit), "queue_seq")
	}
	if err == nil && len(runs) == 0 {
		err = requireVisible(db, tenant, session)
	}
	return runs, wrapError(err, "session", session)
}

// Queue counts the queued runs of all sessions.
func (r *Runs) Queue(ctx context.Context) (core.QueueStats, error) {
	row, err := scan[backlog](r.db.WithContext(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest, " + clockSQL(r.db, 0) + " AS now FROM runs WHERE status = 'queued'"))
	return core.QueueStats{Queued: row.N, Oldest: row.age()}, wrapError(err, "runs", "queued")
}

// Active returns the run of a session that is running or waiting.
func (r *Runs) Active(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.Run, error) {
	db := byID(ctx, r.db, "session", session)
	run, err := findRun(db, db.Where(withinSession(tenant, session)).Where("status IN ('running', 'waiting')"))
	if errors.Is(err, gorm.ErrRecordNotFound) {
		if err = requireVisible(db, tenant, session); err == nil {
			err = core.Errorf(core.ErrNotFound, "session %s has no active run", session)
		}
	}
	return run, wrapError(err, "session", session)
}

// Reports returns the context reports of the newest runs of a session, oldest first, and how many
// runs are older than these.
func (r *Runs) Reports(ctx context.Context, tenant core.Tenant, session core.SessionID, limit int) ([]core.RunReport, int, error) {
	runs := byID(ctx, r.db, "session", session).Model(&models.Run{}).Where(withinSession(tenant, session)).Session(&gorm.Session{})
	reports, err := findRows[core.RunReport](runs.Select("id, created_at, context, COALESCE((SELECT m.seq FROM messages m WHERE m.id = runs.user_message_id), 0) AS seq").
		Where("context IS NOT NULL").Order("queue_seq DESC").Limit(limit))
	if err != nil || len(reports) == 0 {
		return nil, 0, wrapError(err, "runs of session", session)
	}
	slices.Reverse(reports)
	var older int64
	if len(reports) == limit {
		err = runs.Where("queue_seq < (SELECT queue_seq FROM runs WHERE id = ?)", reports[0].RunID).Count(&older).Error
	}
	return reports, int(older), wrapError(err, "runs of session", session)
}

// activeRunsSQL finds the runs of an owner that have not ended, and those since an id, through indexes.
const activeRunsSQL = "id IN (SELECT id FROM runs WHERE status = 'queued' AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE status IN ('running', 'waiting') AND owner = @owner" +
	" UNION ALL SELECT id FROM runs WHERE id >= @first AND owner = @owner)" +
	" AND EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session_id AND " + visibleSQL + ")"

// runTotalsSQL counts runs by their status.
const runTotalsSQL = "COUNT(*) FILTER (WHERE status = 'queued') AS queued, COUNT(*) FILTER (WHERE status = 'running') AS running, " +
	"COUNT(*) FILTER (WHERE status = 'waiting') AS waiting, COUNT(*) FILTER (WHERE status = 'succeeded') AS succeeded, " +
	"COUNT(*) FILTER (WHERE status = 'failed') AS failed, COUNT(*) FILTER (WHERE status = 'canceled') AS canceled"

// ListAll returns the runs of all sessions since a time, and those that have not ended, the newest first unless
// the query wants the oldest.
func (r *Runs) ListAll(ctx context.Context, tenant core.Tenant, q core.RunQuery) (core.RunList, error) {
	newest := keyset[core.RunHead]{list: "all runs", column: "id"}
	if q.Oldest {
		newest.list, newest.ascending = "all runs, oldest first", true
	}
	runs := r.db.WithContext(ctx).Model(&models.Run{}).Where(inScope(tenant)).Where(activeRunsSQL, map[string]any{"owner": tenant.Owner, "first": core.FirstID[string](q.From)}).Session(&gorm.Session{})
	var list core.RunList
	if err := runs.Select(runTotalsSQL).Scan(&list.Totals).Error; err != nil {
		return core.RunList{}, wrapError(err, "runs of", tenant.Owner)
	}
	switch q.Status {
	case "":
	case core.RunsActive:
		runs = runs.Where("status IN ('queued', 'running', 'waiting')")
	default:
		runs = runs.Where("status = ?", q.Status)
	}
	if q.Agent != "" {
		runs = runs.Where("agent = ?", q.Agent)
	}
	if q.Error != "" {
		runs = runs.Where("error ->> 'code' = ?", q.Error)
	}
	page, err := findPage(runs.Select("id, session_id, user_id, status, agent, error, created_at, started_at, finished_at, "+
		"CAST(COALESCE(context ->> 'used', '0') AS bigint) AS prompt, (SELECT title FROM sessions WHERE sessions.id = runs.session_id) AS title"),
		newest, q.PageQuery, longColumns{}, func(row core.RunHead) position { return position{ID: string(row.ID)} })
	if err == nil {
		err = addApprovals(r.db.WithContext(ctx).Where("status = 'open'"), page.Items, func(run *core.RunHead) (core.RunID, *[]core.Approval) { return run.ID, &run.Approvals })
	}
	list.Items, list.NextCursor = page.Items, page.NextCursor
	return list, wrapError(err, "runs of", tenant.Owner)
}

// addApprovals adds to listed runs their approvals that db selects, without long arguments.
func addApprovals[R any](db *gorm.DB, runs []R, of func(*R) (core.RunID, *[]core.Approval)) error {
	lists := map[core.RunID]*[]core.Approval{}
	for i := range runs {
		id, list := of(&runs[i])
		lists[id] = list
	}
	all, err := approvals(db.Omit("result").Where("run_id IN ?", slices.Collect(maps.Keys(lists))))
	for _, a := range all {
		if len(a.Arguments)+len(a.Edited) > core.MaxListedArguments {
			a.Arguments, a.Edited = "", ""
		}
		*lists[a.RunID] = append(*lists[a.RunID], a)
	}
	return err
}
