package repositories

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Restorable returns the version of a session's summary if it may be made the active
// one again: one of the conversation as a whole, whose words are still there and
// whose last message is on the current path. Otherwise it is ErrUnprocessable with
// the reason, and ErrNotFound for one that does not exist.
func (r *Summaries) Restorable(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error) {
	if _, err := r.Get(ctx, scope, id, version); err != nil {
		return core.Summary{}, err
	}
	row, err := restorable(r.db.WithContext(ctx), id, version)
	if err != nil {
		return core.Summary{}, failure(err, "session", id)
	}
	return row.Core(), nil
}

// restorable is Restorable for a session that is known to be the scope's.
func restorable(db *gorm.DB, id core.SessionID, version int) (models.Summary, error) {
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
		return row, core.Errorf(core.ErrUnprocessable, "version %d was made ahead and never in use", version)
	case row.State == string(core.SummaryErased):
		return row, core.Errorf(core.ErrUnprocessable, "version %d is gone: a message that it covered was deleted", version)
	}
	err = db.Select("id, on_path").Where("id = ?", row.ThroughID).Take(&last).Error
	if err == nil && !last.OnPath {
		err = core.Errorf(core.ErrUnprocessable, "version %d ends with message %s, which is on another branch: select that branch first", version, row.ThroughID)
	}
	return row, err
}

// RestoreSummary makes an earlier version of the summary the active one, its cursor
// included, or leaves the session without one (version 0), if nobody changed the
// session's context since its prompt revision was in.Expect; otherwise it is
// ErrStale. A version becomes a new one that repeats it. Those on the path that
// cover more do not come back by themselves any more, when the path changes; notes on
// tool loops that they had passed do.
// Errors are those of Summaries.Restorable, too.
func (r *Sessions) RestoreSummary(ctx context.Context, scope core.Scope, in core.SummaryRestore) (core.Session, []core.Event, error) {
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, in.SessionID, visible(scope)); err != nil {
			return err
		}
		if j.session.PromptRevision != in.Expect {
			return core.Errorf(core.ErrStale, "session %s was compacted by somebody else; load it again", in.SessionID)
		}
		j.revise(in.PromptState)
		version, err := j.restore(in.Version)
		if err != nil {
			return err
		}
		if err := j.resumeLoops(math.MaxInt64); err != nil {
			return err
		}
		events := in.Events
		if version > 0 {
			events = withVersion(events, version)
		}
		j.emit(events...)
		return j.close()
	})
	if err != nil {
		return core.Session{}, nil, failure(err, "session", in.SessionID)
	}
	return j.session.Core(), j.events, nil
}

// restore repeats the version, or forgets the summary, and returns the number of
// the new version.
func (j *journal) restore(version int) (int, error) {
	if version == 0 {
		err := j.undo(models.Summary{})
		if err == nil {
			err = j.dropPrepared() // it extends the summary that goes
		}
		if err == nil {
			err = j.forget()
		}
		return 0, err
	}
	row, err := restorable(j.tx, core.SessionID(j.session.ID), version)
	if err != nil {
		return 0, err
	}
	if err := j.undo(row); err != nil {
		return 0, err
	}
	return j.activate(repeated(row, core.TriggerRestore))
}

const undoSQL = `UPDATE session_summaries SET state = 'undone'
WHERE session_id = @s AND kind = 'rolling' AND state IN ('active', 'dropped') AND activated_at IS NOT NULL
AND (through_seq > @through OR through_seq = @through AND version > @version)
AND EXISTS (SELECT 1 FROM messages m WHERE m.id = through_id AND m.on_path)`

// undo takes back the versions on the path that end behind the given one, or end with
// it and are newer: the newest that ends before a change of the path is else the one
// that comes back.
func (j *journal) undo(to models.Summary) error {
	return j.tx.Exec(undoSQL, sql.Named("s", j.session.ID), sql.Named("through", to.ThroughSeq), sql.Named("version", to.Version)).Error
}

// Before returns the newest version of the conversation's summary before the given
// one whose words are still there; ErrNotFound if there is none.
func (r *Summaries) Before(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error) {
	if err := known("session", id); err != nil {
		return core.Summary{}, err
	}
	var row models.Summary
	err := r.db.WithContext(ctx).Scopes(within(scope, id)).
		Where("kind = 'rolling' AND state IN ('active', 'dropped', 'undone') AND activated_at IS NOT NULL AND version < ?", version).
		Order("version DESC").Take(&row).Error
	return row.Core(), failure(err, "session", id)
}

const firstSQL = `SELECT COALESCE(MIN(s.version), 0) FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.owner = @owner AND s.kind = 'rolling' AND s.activated_at IS NOT NULL AND s.through_seq >= @seq AND m.on_path`

// FirstCovering returns the first version of the summary of the present
// conversation that covered its message with the seq; 0 = none did.
func (r *Summaries) FirstCovering(ctx context.Context, scope core.Scope, id core.SessionID, seq int64) (int, error) {
	if err := known("session", id); err != nil {
		return 0, err
	}
	db := r.db.WithContext(ctx)
	if err := mustSee(db, scope, id); err != nil {
		return 0, err
	}
	var version int
	err := db.Raw(firstSQL, sql.Named("s", id), sql.Named("owner", scope.Owner), sql.Named("seq", seq)).Scan(&version).Error
	return version, failure(err, "session", id)
}
