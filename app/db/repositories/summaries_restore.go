package repositories

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/models"
)

// Restorable returns a version of a session's summary if it may become the active one
// again: it must be a summary of the whole conversation, its text must still exist, and its
// last message must be on the current path. Otherwise it returns ErrUnprocessable with the
// reason, and ErrNotFound for a version that does not exist.
func (r *Summaries) Restorable(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	if _, err := r.Get(ctx, tenant, id, version); err != nil {
		return core.Summary{}, err
	}
	row, err := findRestorable(r.db.WithContext(ctx), id, version)
	if err != nil {
		return core.Summary{}, wrapError(err, "session", id)
	}
	return row.Core(), nil
}

// findRestorable is Restorable for a session that is known to be in the scope.
func findRestorable(db *gorm.DB, id core.SessionID, version int) (models.Summary, error) {
	var row models.Summary
	err := db.Where("session_id = ? AND version = ?", id, version).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return row, core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", id, version)
	}
	if err != nil {
		return row, err
	}
	var last models.Message
	switch {
	case row.Kind != string(core.SummaryRolling):
		return row, core.Errorf(core.ErrUnprocessable, "version %d is the summary of one run's tool calls and not of the conversation", version)
	case row.ActivatedAt == nil && row.State != string(core.SummaryErased):
		return row, core.Errorf(core.ErrUnprocessable, "version %d was prepared in advance and never used", version)
	case row.State == string(core.SummaryErased):
		return row, core.Errorf(core.ErrUnprocessable, "version %d was erased: a message that it covered was deleted or edited", version)
	}
	err = db.Select("id, on_path").Where("id = ?", row.ThroughID).Take(&last).Error
	if err == nil && !last.OnPath {
		err = core.Errorf(core.ErrUnprocessable, "version %d ends with message %s, which is on another branch: select that branch first", version, row.ThroughID)
	}
	return row, err
}

// RestoreSummary makes an earlier version of the summary the active one, with its cursor,
// or leaves the session without one (version 0), if the session's prompt revision is still
// in.Expect; otherwise it returns ErrStale. A version becomes a new one that repeats it.
// Versions on the path that cover more are no longer restored when the path changes; notes
// on tool loops that they had passed become active again. Other errors are those of
// Summaries.Restorable.
func (r *Sessions) RestoreSummary(ctx context.Context, tenant core.Tenant, in core.SummaryRestore) (core.Session, []core.Event, error) {
	stx, err := changeOnce(ctx, r.db, in.SessionID, func(stx *sessionTx) error {
		if stx.session.PromptRevision != in.Expect {
			return core.Errorf(core.ErrStale, "session %s was compacted by another process; load it again", in.SessionID)
		}
		stx.raiseRevision(in.PromptState)
		version, err := stx.restoreVersion(in.Version)
		if err != nil {
			return err
		}
		if err := stx.resumeLoops(math.MaxInt64); err != nil {
			return err
		}
		stx.emitEvents(conversation.WithVersion(in.Events, version)...)
		return nil
	}, visibleTo(tenant))
	if err != nil {
		return core.Session{}, nil, wrapError(err, "session", in.SessionID)
	}
	session, err := r.Get(ctx, tenant, in.SessionID)
	if stx == nil { // an earlier execution of the request has done it
		return session, nil, err
	}
	return session, stx.events, err
}

// restoreVersion repeats the version, or clears the summary, and returns the number of the
// new version.
func (stx *sessionTx) restoreVersion(version int) (int, error) {
	if version == 0 {
		err := stx.undoVersions(models.Summary{})
		if err == nil {
			err = stx.dropPrepared() // it extends the summary that goes
		}
		if err == nil {
			err = stx.clearSummary()
		}
		return 0, err
	}
	row, err := findRestorable(stx.tx, core.SessionID(stx.session.ID), version)
	if err != nil {
		return 0, err
	}
	if err := stx.undoVersions(row); err != nil {
		return 0, err
	}
	s := repeatVersion(row, core.TriggerRestore, "")
	s.MadeFor = 0 // a person wants it, whatever the model is
	return stx.activateSummary(s)
}

const undoSQL = `UPDATE session_summaries SET state = 'undone'
WHERE session_id = @s AND kind = 'rolling' AND state IN ('active', 'dropped', 'prepared')
AND (through_seq > @through OR through_seq = @through AND version > @version)
AND EXISTS (SELECT 1 FROM messages m WHERE m.id = through_id AND m.on_path)`

// undoVersions withdraws the versions on the path that end after the given one, or end with
// it and are newer. Otherwise fallBack would restore them when the path changes.
func (stx *sessionTx) undoVersions(to models.Summary) error {
	return stx.tx.Exec(undoSQL, sql.Named("s", stx.session.ID), sql.Named("through", to.ThroughSeq), sql.Named("version", to.Version)).Error
}

// Before returns the newest version of the conversation's summary before the given one
// whose text still exists; ErrNotFound if there is none.
func (r *Summaries) Before(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	var row models.Summary
	err := byID(ctx, r.db, "session", id).Scopes(withinSession(tenant, id)).
		Where("kind = 'rolling' AND state IN ('active', 'dropped', 'undone') AND activated_at IS NOT NULL AND version < ?", version).
		Order("version DESC").Take(&row).Error
	return row.Core(), wrapError(err, "session", id)
}

const firstSQL = `SELECT COALESCE(MIN(s.version), 0) FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.owner = @owner AND s.kind = 'rolling' AND s.activated_at IS NOT NULL AND s.through_seq >= @seq AND m.on_path`

// FirstCovering returns the first version of the summary of the present conversation that
// covered the message with the seq; 0 = none.
func (r *Summaries) FirstCovering(ctx context.Context, tenant core.Tenant, id core.SessionID, seq int64) (int, error) {
	db := byID(ctx, r.db, "session", id)
	if err := requireVisible(db, tenant, id); err != nil {
		return 0, err
	}
	var version int
	err := db.Raw(firstSQL, sql.Named("s", id), sql.Named("owner", tenant.Owner), sql.Named("seq", seq)).Scan(&version).Error
	return version, wrapError(err, "session", id)
}
