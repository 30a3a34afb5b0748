package repositories

import (
	"context"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// totalSQL adds model calls up. A call that failed before it said anything has no
// price to be missed; one that was canceled while the model spoke has one.
const totalSQL = `COUNT(*) AS calls,
	CAST(COALESCE(SUM(input_tokens), 0) AS bigint) AS input_tokens,
	CAST(COALESCE(SUM(output_tokens), 0) AS bigint) AS output_tokens,
	CAST(COALESCE(SUM(reasoning_tokens), 0) AS bigint) AS reasoning_tokens,
	CAST(COALESCE(SUM(cache_read_tokens), 0) AS bigint) AS cache_read_tokens,
	CAST(COALESCE(SUM(cache_write_tokens), 0) AS bigint) AS cache_write_tokens,
	CAST(COALESCE(SUM(cost_micro_usd), 0) AS bigint) AS cost_micro_usd,
	CAST(COALESCE(SUM(CASE WHEN cost_micro_usd IS NULL AND (error IN ('', 'canceled') OR input_tokens > 0) THEN 1 ELSE 0 END), 0) AS bigint) AS unpriced_calls`

// total is a row of totalSQL.
type total struct {
	Key              string
	Calls            int64
	InputTokens      int64
	OutputTokens     int64
	ReasoningTokens  int64
	CacheReadTokens  int64
	CacheWriteTokens int64
	CostMicroUsd     int64
	UnpricedCalls    int64
}

func (t total) core() core.UsageTotal {
	return core.UsageTotal{
		Calls: t.Calls, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens, ReasoningTokens: t.ReasoningTokens,
		CacheReadTokens: t.CacheReadTokens, CacheWriteTokens: t.CacheWriteTokens,
		CostMicroUSD: t.CostMicroUsd, UnpricedCalls: t.UnpricedCalls,
	}
}

// SessionTotal returns what all model calls of a session came to, summaries and
// its title included.
func (r *ModelCalls) SessionTotal(ctx context.Context, scope core.Scope, session core.SessionID) (core.UsageTotal, error) {
	if err := known("session", session); err != nil {
		return core.UsageTotal{}, err
	}
	db := r.db.WithContext(ctx)
	if err := mustSee(db, scope, session); err != nil {
		return core.UsageTotal{}, err
	}
	var sum total
	err := db.Model(&models.ModelCall{}).Where("session_id = ?", session).Select(totalSQL).Scan(&sum).Error
	return sum.core(), failure(err, "usage of session", session)
}

// Usage returns a page of the scope's usage in a span of time, by groups, and the
// total of all of them. Errors: ErrInvalid for a cursor that is none of this list.
func (r *ModelCalls) Usage(ctx context.Context, scope core.Scope, q core.UsageQuery) (core.UsageReport, error) {
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return core.UsageReport{}, err
	}
	list := "usage/" + string(q.GroupBy)
	after, more, err := parseCursor(q.Cursor, list)
	if err != nil {
		return core.UsageReport{}, err
	}
	report := core.UsageReport{GroupBy: q.GroupBy, From: q.From, To: q.To}
	var sum total
	if err := r.calls(ctx, scope, q).Select(totalSQL).Scan(&sum).Error; err != nil {
		return core.UsageReport{}, failure(err, "usage of", scope.Owner)
	}
	report.Total = sum.core()
	key, order, beyond := groupSQL(r.db, q.GroupBy)
	db := r.calls(ctx, scope, q).Select(key + " AS key, " + totalSQL).Group(key).Order(key + " " + order).Limit(limit + 1)
	if more {
		db = db.Where(key+" "+beyond+" ?", after.Key)
	}
	var rows []total
	if err := db.Scan(&rows).Error; err != nil {
		return core.UsageReport{}, failure(err, "usage of", scope.Owner)
	}
	page, err := page(rows, limit, sure(func(t total) core.UsageRow {
		return core.UsageRow{Key: t.Key, UsageTotal: t.core()}
	}), func(t total) position { return position{List: list, Key: t.Key} })
	report.Items, report.NextCursor = page.Items, page.NextCursor
	return report, err
}

// calls are the scope's model calls in a span of time.
func (r *ModelCalls) calls(ctx context.Context, scope core.Scope, q core.UsageQuery) *gorm.DB {
	return r.db.WithContext(ctx).Model(&models.ModelCall{}).Scopes(visible(scope)).
		Where("created_at >= ? AND created_at < ?", q.From.UTC(), q.To.UTC())
}

// groupSQL returns the expression of a group's key, the order of the groups, and
// what comes after a key in it. Texts are compared by their bytes on both databases.
func groupSQL(db *gorm.DB, by core.UsageGroup) (key, order, beyond string) {
	switch by {
	case core.UsageByDay:
		key = "substr(created_at, 1, 10)" // SQLite's times are texts, of UTC
		if isPostgres(db) {
			key = "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
		}
		return key, "DESC", "<"
	case core.UsageBySession:
		key = "COALESCE(CAST(session_id AS text), '')"
		if isPostgres(db) {
			key += ` COLLATE "C"`
		}
		return key, "DESC", "<"
	case core.UsageByUser:
		key = "user_id"
	case core.UsageByAgent:
		key = "agent"
	case core.UsageByModel:
		key = "model"
	}
	if isPostgres(db) {
		key += ` COLLATE "C"`
	}
	return key, "ASC", ">"
}

// Spent returns what the owner's model calls came to since a time. Where the
// provider did not tell the tokens of a call, they are those of its prompt as it
// was estimated.
func (r *ModelCalls) Spent(ctx context.Context, owner string, since time.Time) (core.Spent, error) {
	var sum struct{ Tokens, Micro int64 }
	err := r.db.WithContext(ctx).Model(&models.ModelCall{}).Where("owner = ? AND created_at >= ?", owner, since.UTC()).Select(
		`CAST(COALESCE(SUM(CASE WHEN input_tokens + output_tokens > 0 THEN input_tokens + output_tokens WHEN error IN ('', 'canceled') THEN estimated_tokens ELSE 0 END), 0) AS bigint) AS tokens,
		CAST(COALESCE(SUM(cost_micro_usd), 0) AS bigint) AS micro`).Scan(&sum).Error
	return core.Spent{Tokens: sum.Tokens, MicroUSD: sum.Micro}, failure(err, "usage of", owner)
}
