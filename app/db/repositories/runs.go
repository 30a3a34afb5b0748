package repositories

import (
	"cmp"
	"context"
	"errors"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Runs stores runs and everything that happens during them. Safe for concurrent use, by any
// number of replicas.
//
// The methods are in files by the stage of a run's life: this one reads, then
// runs_accept.go, runs_claim.go, leases.go, runs_write.go, approvals.go, runs_cancel.go and
// tool_executions.go.
type Runs struct {
	db      *gorm.DB
	reserve *gorm.DB // for leases
}

// NewRuns returns the runs in db.
func NewRuns(db *gorm.DB) *Runs { return &Runs{db: db, reserve: db} }

// WithReserve returns the runs with a separate handle for renewing leases and finding work,
// which does not wait for the connections of requests (db.DB.Reserve).
func (r *Runs) WithReserve(reserve *gorm.DB) *Runs { return &Runs{db: r.db, reserve: reserve} }

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
	run, err := findRun(db, db.Scopes(withinSession(tenant, session)).Where("client_message_id = ?", clientMessageID))
	return run, wrapError(err, "run of client_message_id", clientMessageID)
}

// List returns the runs of a session, the newest first.
func (r *Runs) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	none := core.Page[core.Run]{}
	limit, after, err := pageStart(q.Limit, q.Cursor, "runs")
	if err != nil {
		return none, err
	}
	db := byID(ctx, r.db, "session", session)
	list := db.Scopes(withinSession(tenant, session))
	if after.isSet() {
		list = list.Where("queue_seq < ?", after.N)
	}
	var runs []core.Run
	list = list.Model(&models.Run{}).Session(&gorm.Session{})
	limit, err = fitRows(list.Order("queue_seq DESC"), longRunColumns(db), limit, cmp.Or(q.Bytes, core.MaxPageBytes))
	if err == nil {
		runs, err = findRuns(db, list.Limit(limit+1), "queue_seq DESC")
	}
	if err == nil && len(runs) == 0 {
		err = requireVisible(db, tenant, session)
	}
	if err != nil {
		return none, wrapError(err, "session", session)
	}
	return pageOf(runs, limit, func(r core.Run) (core.Run, error) { return r, nil }, func(r core.Run) position {
		return position{List: "runs", N: r.QueueSeq}
	})
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
	list := db.Model(&models.Run{}).Scopes(withinSession(tenant, session)).Where("status = 'queued'").Session(&gorm.Session{})
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
	var row struct {
		N      int
		Oldest *clockTime
		Now    clockTime
	}
	err := r.db.WithContext(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest, " + clockSQL(r.db, 0) + " AS now FROM runs WHERE status = 'queued'").Scan(&row).Error
	stats := core.QueueStats{Queued: row.N}
	if err == nil && row.Oldest != nil {
		stats.Oldest = max(row.Now.Sub(row.Oldest.Time), 0)
	}
	return stats, wrapError(err, "runs", "queued")
}

// Active returns the run of a session that is running or waiting.
func (r *Runs) Active(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.Run, error) {
	db := byID(ctx, r.db, "session", session)
	run, err := findRun(db, db.Scopes(withinSession(tenant, session)).Where("status IN ('running', 'waiting')"))
	if errors.Is(err, gorm.ErrRecordNotFound) {
		if err = requireVisible(db, tenant, session); err == nil {
			err = core.Errorf(core.ErrNotFound, "session %s has no active run", session)
		}
	}
	return run, wrapError(err, "session", session)
}
