package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// SlackThreads stores which threads of Slack show which sessions. Safe for concurrent use.
type SlackThreads struct{ db *gorm.DB }

// NewSlackThreads returns the threads in db.
func NewSlackThreads(db *gorm.DB) *SlackThreads { return &SlackThreads{db: db} }

// Bind binds the thread to its session, together with the alias. It may be repeated, moves a
// thread whose alias was moved to another session. What happened until then is not posted. ErrConflict if the alias or the session belongs to another one; ErrNotFound for a
// session that the owner does not have.
func (r *SlackThreads) Bind(ctx context.Context, t core.SlackThread) ([]core.Event, error) {
	return changeSession(ctx, r.db, t.SessionID, func(stx *sessionTx) error {
		if stx.session.Temporary {
			return core.Errorf(core.ErrUnprocessable, "session %s is temporary and cannot be attached to Slack", t.SessionID)
		}
		if err := stx.bindAlias(t); err != nil {
			return err
		}
		var rows []models.SlackThread
		if err := stx.tx.Where("session_id = ? OR team = ? AND channel = ? AND thread = ?", t.SessionID, t.Team, t.Channel, t.Thread).Find(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			if row.Team != t.Team || row.Channel != t.Channel || row.Thread != t.Thread {
				return core.Errorf(core.ErrConflict, "session %s belongs to another thread of Slack; detach it first", t.SessionID)
			}
			if row.SessionID == t.SessionID {
				return nil
			}
			if row.Owner != t.Owner {
				return core.Errorf(core.ErrConflict, "this thread of Slack belongs to another session")
			}
		}
		stx.session.Slack = true
		if err := stx.emitSlack(&t); err != nil {
			return err
		}
		now, seq := core.Now(), stx.session.LastEventSeq
		row := models.SlackThread{
			SlackThread: t, FirstSeq: stx.session.LastSeq, SentSeq: seq, LastSeq: seq, DueAt: now, CreatedAt: now,
		}
		if err := stx.tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&row).Error; err != nil {
			return err
		}
		if many := t.Speakers(); many != "" {
			stx.session.Speakers = many
		}
		return nil
	}, visibleTo(core.Tenant{Owner: t.Owner}))
}

// bindAlias makes the thread's name an alias of the session. ErrConflict if it is that of
// another one.
func (stx *sessionTx) bindAlias(t core.SlackThread) error {
	a := t.Alias()
	alias := models.SessionAlias{Owner: t.Owner, Surface: string(a.Surface), Alias: a.Name, SessionID: string(t.SessionID), CreatedAt: core.Now()}
	if err := stx.tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&alias).Error; err != nil {
		return err
	}
	var known models.SessionAlias
	err := stx.tx.Where("owner = ? AND surface = ? AND alias = ?", t.Owner, a.Surface, a.Name).Take(&known).Error
	if err == nil && known.SessionID != string(t.SessionID) {
		return core.Errorf(core.ErrConflict, "this thread of Slack belongs to session %s; detach that first", known.SessionID)
	}
	return err
}

// Find returns the thread; ErrNotFound if it is not bound.
func (r *SlackThreads) Find(ctx context.Context, team, channel, thread string) (core.SlackThread, error) {
	row, err := takeRow[models.SlackThread](r.db.WithContext(ctx).Where("team = ? AND channel = ? AND thread = ?", team, channel, thread), "Slack thread", thread)
	return row.SlackThread, err
}

// OfSession returns the session's thread; ErrNotFound if it has none.
func (r *SlackThreads) OfSession(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThread, error) {
	row, err := r.ofSession(ctx, tenant, session)
	return row.SlackThread, err
}

func (r *SlackThreads) ofSession(ctx context.Context, tenant core.Tenant, session core.SessionID) (row models.SlackThread, err error) {
	if _, err := NewSessions(r.db).Get(ctx, tenant, session); err != nil {
		return row, err
	}
	return takeRow[models.SlackThread](r.db.WithContext(ctx).Where("session_id = ?", session), "Slack thread of session", session)
}

// Status returns the session's thread with what is wrong there: since when it lacks posts, the posts that
// Slack refused or refused to change, and those of which it is unknown whether they are in Slack, the
// newest first.
func (r *SlackThreads) Status(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThreadStatus, error) {
	row, err := r.ofSession(ctx, tenant, session)
	status := core.SlackThreadStatus{SlackThread: row.SlackThread}
	if err != nil {
		return status, err
	}
	if row.SentSeq < row.LastSeq && status.Mode.Posts() {
		var missing []models.Event // none if it is no longer kept
		err = r.db.WithContext(ctx).Select("at").Where("session_id = ? AND event_seq > ?", session, row.SentSeq).Order("event_seq").Limit(1).Find(&missing).Error
		status.Reason, status.NextAt = row.Reason, &row.DueAt
		for _, e := range missing {
			status.BehindSince = &e.At
		}
	}
	if err != nil {
		return status, wrapError(err, "Slack thread of session", session)
	}
	posts, err := findRows[core.SlackPost](r.db.WithContext(ctx).Where("session_id = ?", session).Where(faultSQL).Order("created_at DESC, item_id, part").Limit(core.MaxSlackFaults))
	for _, p := range posts {
		status.Faults = append(status.Faults, core.SlackFault{ItemID: p.ItemID, Part: p.Part, State: p.State, Reason: p.Error, CreatedAt: p.CreatedAt})
	}
	if err == nil {
		posted, failed := count(r.db.WithContext(ctx).Model(&core.SlackPost{}).Where("session_id = ? AND part = 0 AND kind = 'message' AND state = 'sent'", session))
		status.Posted, err = int(posted), failed
	}
	return status, wrapError(err, "Slack posts of session", session)
}

// CountBehind returns how many threads lack posts because the last attempt to post failed.
func (r *SlackThreads) CountBehind(ctx context.Context) (n int64, err error) {
	err = r.db.WithContext(ctx).Model(&models.SlackThread{}).Where(behindSQL).Where("reason <> ''").Count(&n).Error
	return n, wrapError(err, "Slack threads", "")
}

// SetMode changes the mode of the session's thread. A thread that showed nothing until then
// begins with what happens afterwards; in a mode that shows nothing, posting ends.
func (r *SlackThreads) SetMode(ctx context.Context, tenant core.Tenant, session core.SessionID, mode core.SlackMode) (_ core.SlackThread, events []core.Event, err error) {
	var row models.SlackThread
	events, err = changeSession(ctx, r.db, session, func(stx *sessionTx) error {
		if row, err = takeRow[models.SlackThread](stx.tx.Where("session_id = ?", session), "Slack thread of session", session); err != nil {
			return err
		}
		before := row.Mode
		if before == mode {
			return nil
		}
		row.Mode = mode
		if err := stx.emitSlack(new(row.SlackThread)); err != nil {
			return err
		}
		changes := map[string]any{}
		if !mode.Posts() {
			changes = endLease(stx.tx, 0) // the process that has it stops
		}
		changes["mode"] = string(mode)
		if mode.Posts() && !before.Posts() {
			changes["first_seq"], changes["sent_seq"] = stx.session.LastSeq, stx.session.LastEventSeq
		}
		return stx.tx.Model(&models.SlackThread{}).Where("session_id = ?", session).UpdateColumns(changes).Error
	}, visibleTo(tenant))
	return row.SlackThread, events, err
}

// Stop ends posting to the session's thread, if it has one: its mode becomes "off".
func (r *SlackThreads) Stop(ctx context.Context, session core.SessionID) error {
	changes := endLease(r.db, 0) // the process that has it stops
	changes["mode"] = string(core.SlackOff)
	err := r.db.WithContext(ctx).Model(&models.SlackThread{}).Where("session_id = ?", session).UpdateColumns(changes).Error
	return wrapError(err, "Slack thread of session", session)
}

// Unbind separates the session from its thread, whose name is no longer its alias. It may be
// repeated. What was posted stays in Slack.
func (r *SlackThreads) Unbind(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Event, error) {
	return changeSession(ctx, r.db, session, func(stx *sessionTx) error {
		t, err := findFirst[models.SlackThread](stx.tx.Where("session_id = ?", session))
		if err != nil || t == nil {
			return err
		}
		if err := stx.tx.Where("owner = ? AND surface = ? AND alias = ?", t.Owner, t.Alias().Surface, t.Alias().Name).Delete(&models.SessionAlias{}).Error; err != nil {
			return err
		}
		if err := stx.tx.Where("session_id = ?", session).Delete(&models.SlackThread{}).Error; err != nil {
			return err
		}
		stx.session.Slack = false
		return stx.emitSlack(nil)
	}, visibleTo(tenant))
}

// behindSQL is the condition of the index slack_threads_behind.
const behindSQL = "sent_seq < last_seq AND mode IN ('two_way', 'to_slack')"

// Claim leases threads that are behind their sessions, those that wait the longest first.
// Several replicas that claim concurrently get different threads.
func (r *SlackThreads) Claim(ctx context.Context, c core.SlackClaim) ([]core.SlackBacklog, error) {
	var rows []models.SlackThread
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		due := tx.Where(behindSQL).Where("due_at <= " + clockBoundSQL(tx, 0)).Order("due_at").Limit(c.Limit)
		if len(c.Busy) > 0 {
			due = due.Where("team || '/' || channel NOT IN ?", c.Busy)
		}
		rows, err = updateFree[models.SlackThread](tx, "session_id", due, leasedUntil(tx, c.Worker, c.Lease))
		return err
	})
	if err != nil {
		return nil, wrapError(err, "Slack threads for worker", c.Worker)
	}
	return mapRows(rows, func(t models.SlackThread) core.SlackBacklog {
		return core.SlackBacklog{SlackThread: t.SlackThread, FirstSeq: t.FirstSeq, SentSeq: t.SentSeq}
	}), nil
}

// leasedUntil are the lease columns of a thread that the worker has for the time.
func leasedUntil(db *gorm.DB, worker string, d time.Duration) map[string]any {
	return map[string]any{"lease_owner": worker, "lease_until": gorm.Expr(clockSQL(db, d)), "due_at": gorm.Expr(clockSQL(db, d))}
}

// heldBy selects the thread of the session while the worker has its lease.
func heldBy(db *gorm.DB, worker string, session core.SessionID) *gorm.DB {
	return db.Model(&models.SlackThread{}).Where("session_id = ? AND lease_owner = ? AND lease_until > "+clockBoundSQL(db, 0), session, worker)
}

// Advance stores that everything up to the event is posted, and extends the lease. ErrStale
// if the worker no longer has it.
func (r *SlackThreads) Advance(ctx context.Context, worker string, session core.SessionID, seq int64, lease time.Duration) error {
	changes := leasedUntil(r.db, worker, lease)
	changes["sent_seq"] = seq
	res := heldBy(r.db.WithContext(ctx), worker, session).UpdateColumns(changes)
	if res.Error == nil && res.RowsAffected == 0 {
		return errThreadLost(session)
	}
	return wrapError(res.Error, "Slack thread of session", session)
}

// errThreadLost says that the worker does not have the thread's lease.
func errThreadLost(session core.SessionID) error {
	return core.Errorf(core.ErrStale, "the Slack thread of session %s belongs to another process, or is detached", session)
}

// Release ends the worker's lease of a thread, which becomes due after the time, for the reason. It
// does nothing without the lease.
func (r *SlackThreads) Release(ctx context.Context, worker string, session core.SessionID, after time.Duration, reason string) error {
	changes := endLease(r.db, after)
	changes["reason"] = core.CleanText(reason)
	err := heldBy(r.db.WithContext(ctx), worker, session).UpdateColumns(changes).Error
	return wrapError(err, "Slack thread of session", session)
}

// endLease returns the lease columns of a thread that is due after the time.
func endLease(db *gorm.DB, after time.Duration) map[string]any {
	return map[string]any{"lease_owner": "", "lease_until": nil, "due_at": gorm.Expr(clockSQL(db, after))}
}

// ReleaseAll ends the leases of all earlier processes of the worker's replica.
func (r *SlackThreads) ReleaseAll(ctx context.Context, worker string) error {
	of, args := workersOf(worker)
	err := r.db.WithContext(ctx).Model(&models.SlackThread{}).Where("lease_owner <> ''").Where(of, args...).UpdateColumns(endLease(r.db, 0)).Error
	return wrapError(err, "Slack threads of worker", worker)
}

// checkThreadLease checks in a transaction that the worker has the thread's lease, and locks its row.
func checkThreadLease(tx *gorm.DB, worker string, session core.SessionID) error {
	held := heldBy(tx, worker, session).Select("session_id").Clauses(clause.Locking{Strength: clause.LockingStrengthUpdate})
	row, err := findFirst[models.SlackThread](held)
	if err == nil && row == nil {
		err = errThreadLost(session)
	}
	return err
}

// SlackInstallations stores where the Slack app is installed. Safe for concurrent use.
type SlackInstallations struct{ db *gorm.DB }

// NewSlackInstallations returns the installations in db.
func NewSlackInstallations(db *gorm.DB) *SlackInstallations { return &SlackInstallations{db: db} }

// Save stores an installation, in the place of an earlier one of the team.
func (r *SlackInstallations) Save(ctx context.Context, i core.SlackInstallation) error {
	err := r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&i).Error
	return wrapError(err, "Slack installation", i.Team)
}

// List returns all installations, also the revoked ones, ordered by team.
func (r *SlackInstallations) List(ctx context.Context) ([]core.SlackInstallation, error) {
	list, err := findRows[core.SlackInstallation](r.db.WithContext(ctx).Order("team"))
	return list, wrapError(err, "Slack installations", "")
}

// Find returns the active installation of the team; ErrNotFound if there is none.
func (r *SlackInstallations) Find(ctx context.Context, team string) (core.SlackInstallation, error) {
	return takeRow[core.SlackInstallation](r.db.WithContext(ctx).Where("team = ? AND state = ?", team, core.SlackInstalled), "Slack installation", team)
}

// Revoke marks an installation revoked and removes its tokens, unless it has other tokens by now.
func (r *SlackInstallations) Revoke(ctx context.Context, i core.SlackInstallation) error {
	err := r.db.WithContext(ctx).Model(&core.SlackInstallation{}).Where("team = ? AND tokens = ? AND state = ?", i.Team, i.Tokens, core.SlackInstalled).
		UpdateColumns(map[string]any{"state": core.SlackRevoked, "tokens": nil, "updated_at": core.Now()}).Error
	return wrapError(err, "Slack installation", i.Team)
}
