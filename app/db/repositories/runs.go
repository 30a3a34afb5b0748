package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Runs stores runs and everything that happens in their course. Safe for
// concurrent use, by any number of replicas.
//
// The methods are in files by the part of a run's life: this one reads, then
// runs_accept.go, runs_claim.go, leases.go, runs_write.go, approvals.go,
// runs_cancel.go and tool_executions.go.
type Runs struct {
	db *gorm.DB
}

// NewRuns returns the runs in db.
func NewRuns(db *gorm.DB) *Runs { return &Runs{db: db} }

// Get returns the run; a waiting one with what it waits for.
func (r *Runs) Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error) {
	if err := known("run", id); err != nil {
		return core.Run{}, err
	}
	var row models.Run
	if err := r.db.WithContext(ctx).Scopes(runsOf(scope)).Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Run{}, failure(err, "run", id)
	}
	run, err := row.Core()
	if err == nil && run.Status == core.RunWaiting {
		run.Approvals, err = approvals(r.db.WithContext(ctx).Where("run_id = ? AND status = 'open'", id))
	}
	return run, err
}

// runsOf narrows a question about runs to those whose session is in the scope.
func runsOf(scope core.Scope) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where("owner = ?", scope.Owner)
		if scope.User != "" {
			db = db.Where("EXISTS (SELECT 1 FROM sessions WHERE sessions.id = runs.session_id AND sessions.user_id = ?)", scope.User)
		}
		return db
	}
}

// List returns the runs of a session, the newest first.
func (r *Runs) List(ctx context.Context, scope core.Scope, session core.SessionID, q core.PageQuery) (core.Page[core.Run], error) {
	none := core.Page[core.Run]{}
	if err := known("session", session); err != nil {
		return none, err
	}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "runs")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx)
	list := db.Scopes(within(scope, session))
	if more {
		list = list.Where("queue_seq < ?", after.N)
	}
	var rows []models.Run
	err = list.Order("queue_seq DESC").Limit(limit + 1).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = mustSee(db, scope, session)
	}
	if err != nil {
		return none, failure(err, "session", session)
	}
	return page(rows, limit, models.Run.Core, func(r models.Run) position {
		return position{List: "runs", N: r.QueueSeq}
	})
}

// Pending returns the queued runs of a session in the order in which they start.
func (r *Runs) Pending(ctx context.Context, scope core.Scope, session core.SessionID) ([]core.Run, error) {
	if err := known("session", session); err != nil {
		return nil, err
	}
	db := r.db.WithContext(ctx)
	var rows []models.Run
	err := db.Scopes(within(scope, session)).Where("status = 'queued'").Order("queue_seq").Find(&rows).Error
	if err == nil && len(rows) == 0 {
		err = mustSee(db, scope, session)
	}
	if err != nil {
		return nil, failure(err, "session", session)
	}
	return values(rows, models.Run.Core)
}

// Queue counts the queued runs of all sessions.
func (r *Runs) Queue(ctx context.Context) (core.QueueStats, error) {
	n, oldest, err := waiting(ctx, r.db, "runs WHERE status = 'queued'")
	return core.QueueStats{Queued: n, Oldest: oldest}, failure(err, "runs", "queued")
}

// waiting counts rows, and tells the age of the oldest by the database's clock.
func waiting(ctx context.Context, db *gorm.DB, from string) (n int, oldest time.Duration, err error) {
	var row struct {
		N      int
		Oldest *clockTime
		Now    clockTime
	}
	err = db.WithContext(ctx).Raw("SELECT COUNT(*) AS n, MIN(created_at) AS oldest, " + clockSQL(db, 0) + " AS now FROM " + from).Scan(&row).Error
	if err == nil && row.Oldest != nil {
		oldest = max(row.Now.Sub(row.Oldest.Time), 0)
	}
	return row.N, oldest, err
}

// Active returns the run of a session that is running or waiting.
func (r *Runs) Active(ctx context.Context, scope core.Scope, session core.SessionID) (core.Run, error) {
	if err := known("session", session); err != nil {
		return core.Run{}, err
	}
	db := r.db.WithContext(ctx)
	var rows []models.Run
	err := db.Scopes(within(scope, session)).Where("status IN ('running', 'waiting')").Limit(1).Find(&rows).Error
	if err == nil && len(rows) == 0 {
		if err = mustSee(db, scope, session); err == nil {
			err = core.Errorf(core.ErrNotFound, "session %s has no active run", session)
		}
	}
	if err != nil {
		return core.Run{}, failure(err, "session", session)
	}
	return rows[0].Core()
}
