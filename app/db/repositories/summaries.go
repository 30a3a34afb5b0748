package repositories

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Summaries reads the versions of sessions' summaries; Sessions.ApplyContext writes them.
// Safe for concurrent use.
type Summaries struct {
	db *gorm.DB
}

// NewSummaries returns the summaries in db.
func NewSummaries(db *gorm.DB) *Summaries { return &Summaries{db: db} }

// List returns the versions of a session's summary, the newest first.
func (r *Summaries) List(ctx context.Context, tenant core.Tenant, id core.SessionID, q core.PageQuery) (core.Page[core.Summary], error) {
	none := core.Page[core.Summary]{}
	limit, after, err := pageStart(q.Limit, q.Cursor, "summaries")
	if err != nil {
		return none, err
	}
	db := byID(ctx, r.db, "session", id)
	list := db.Scopes(withinSession(tenant, id))
	if after.isSet() {
		list = list.Where("version < ?", after.N)
	}
	var rows []models.Summary
	list = list.Model(&models.Summary{}).Order("version DESC").Session(&gorm.Session{})
	limit, err = fitRows(list, longColumns{texts: []string{"content"}, jsons: []string{"native"}}, limit, cmp.Or(q.Bytes, core.MaxPageBytes))
	if err == nil {
		err = list.Limit(limit + 1).Find(&rows).Error
	}
	if err == nil && len(rows) == 0 {
		err = requireVisible(db, tenant, id)
	}
	if err != nil {
		return none, wrapError(err, "session", id)
	}
	return pageOf(rows, limit, infallible(models.Summary.Core), func(s models.Summary) position {
		return position{List: "summaries", N: int64(s.Version)}
	})
}

// Get returns one version of a session's summary.
func (r *Summaries) Get(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Summary, error) {
	db := byID(ctx, r.db, "session", id)
	var row models.Summary
	err := db.Scopes(withinSession(tenant, id)).Where("version = ?", version).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		if err = requireVisible(db, tenant, id); err == nil {
			err = core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", id, version)
		}
	}
	return row.Core(), wrapError(err, "session", id)
}

// maxVersions bounds the result of Versions.
const maxVersions = 256

const versionsSQL = `SELECT s.id, s.version, s.state, s.through_id, s.through_seq, s.token_count, s.messages_covered, s.tokens_covered, s.made_for
FROM session_summaries s JOIN messages m ON m.id = s.through_id
WHERE s.session_id = @s AND s.owner = @owner AND m.on_path AND ` + usableSQL + `
ORDER BY s.through_seq DESC, s.version DESC LIMIT @max`

// Versions returns the versions of the conversation's summary that a prompt can contain,
// without their text, in ascending order of what they cover. Of several that cover the same
// messages it returns the newest, and of more than maxVersions those that cover most.
func (r *Summaries) Versions(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.SummaryVersion, error) {
	db := byID(ctx, r.db, "session", id)
	if err := requireVisible(db, tenant, id); err != nil {
		return nil, err
	}
	var rows []models.Summary
	err := db.Raw(versionsSQL, sql.Named("s", id), sql.Named("owner", tenant.Owner), sql.Named("max", maxVersions)).Scan(&rows).Error
	if err != nil {
		return nil, wrapError(err, "session", id)
	}
	rows = slices.CompactFunc(rows, func(a, b models.Summary) bool { return a.ThroughSeq == b.ThroughSeq })
	slices.Reverse(rows)
	return mapRows(rows, infallible(func(row models.Summary) core.SummaryVersion { return row.Core().AsVersion() }))
}
