package repositories

import (
	"cmp"
	"context"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// ModelCalls reads the usage records, and writes those without a session; Runs.Write and
// Sessions.ApplyContext write the others. Safe for concurrent use.
type ModelCalls struct{ db *gorm.DB }

// NewModelCalls returns the model calls in db.
func NewModelCalls(db *gorm.DB) *ModelCalls { return &ModelCalls{db: db} }

const sumsSQL = `CAST(COALESCE(SUM(input_tokens), 0) AS bigint) AS input_tokens,
	CAST(COALESCE(SUM(output_tokens), 0) AS bigint) AS output_tokens,
	CAST(COALESCE(SUM(reasoning_tokens), 0) AS bigint) AS reasoning_tokens,
	CAST(COALESCE(SUM(cache_read_tokens), 0) AS bigint) AS cache_read_tokens,
	CAST(COALESCE(SUM(cache_write_tokens), 0) AS bigint) AS cache_write_tokens,
	CAST(COALESCE(SUM(cost_micro_usd), 0) AS bigint) AS cost_micro_usd`

// unpricedSQL is 1 for a call with a missing price, as callUsage counts it.
const unpricedSQL = `CASE WHEN cost_micro_usd IS NULL AND (error IN ('', 'canceled') OR input_tokens > 0) THEN 1 ELSE 0 END`

// daysSQL sums days, and single calls in the form of days.
const daysSQL = "CAST(COALESCE(SUM(calls), 0) AS bigint) AS calls, " + sumsSQL + ", CAST(COALESCE(SUM(unpriced_calls), 0) AS bigint) AS unpriced_calls"

// SessionTotal returns the usage of all model calls of a session, including summaries and
// its title.
func (r *ModelCalls) SessionTotal(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.UsageTotal, error) {
	row, err := takeRow[models.Session](byID(ctx, r.db, "session", session).Where(visibleTo(tenant)).Where("id = ?", session), "session", session)
	return row.Usage, err
}

// RecordCall stores a call that belongs to no session.
func (r *ModelCalls) RecordCall(ctx context.Context, call core.ModelCall) error {
	return wrapError(retryTx(func() error {
		return inTx(ctx, r.db, func(tx *gorm.DB) error {
			if err := commit.Insert(tx, &call); err != nil {
				return err
			}
			return commit.Insert(tx, sumDays(usageDays(call, usageShard(call.ID))))
		})
	}), "usage of", call.Owner)
}

// Usage returns a page of the scope's usage in a time range, by groups, and the total of
// all groups. ErrInvalid for a cursor of another list.
//
// Whole UTC days are read from the sums by day, the rest of the range, less than two days,
// call by call.
func (r *ModelCalls) Usage(ctx context.Context, tenant core.Tenant, q core.UsageQuery) (core.UsageReport, error) {
	list := "usage/" + string(q.GroupBy)
	limit, after, err := pageStart(q.Limit, q.Cursor, list)
	if err != nil {
		return core.UsageReport{}, err
	}
	report := core.UsageReport{GroupBy: q.GroupBy, From: q.From, To: q.To}
	var sum core.UsageTotal
	if err := r.usageBetween(ctx, tenant, q, models.UsageOfAll).Select(daysSQL).Scan(&sum).Error; err != nil {
		return core.UsageReport{}, wrapError(err, "usage of", tenant.Owner)
	}
	report.Total = sum
	key, order, beyond, level := "model", "ASC", ">", models.UsageOfAll
	switch q.GroupBy {
	case core.UsageByDay:
		key, order, beyond = "day", "DESC", "<"
	case core.UsageByDayAgent:
		key, order, beyond = "day || ' ' || agent", "DESC", "<"
	case core.UsageBySession: // the newest first: their ids begin with the time
		key, order, beyond, level = "session_id", "DESC", "<", models.UsageOfSession
	case core.UsageByUser:
		key, level = "user_id", models.UsageOfUser
	case core.UsageByAgent:
		key = "agent"
	}
	if key != "day" && isPostgres(r.db) { // texts compare by their bytes on both databases
		key += ` COLLATE "C"`
	}
	db := r.usageBetween(ctx, tenant, q, level).Select(key + " AS key, " + daysSQL).Group(key)
	if q.Largest {
		db = db.Order("SUM(input_tokens) + SUM(output_tokens) DESC")
	}
	db = db.Order(key + " " + order).Limit(limit + 1)
	if after.isSet() {
		db = db.Where(key+" "+beyond+" ?", after.Key)
	}
	var rows []core.UsageRow
	if err := db.Scan(&rows).Error; err != nil {
		return core.UsageReport{}, wrapError(err, "usage of", tenant.Owner)
	}
	if q.Largest {
		rows = rows[:min(len(rows), limit)]
	}
	page := pageOf(rows, limit, func(t core.UsageRow) position { return position{List: list, Key: t.Key} })
	report.Items, report.NextCursor = page.Items, page.NextCursor
	return report, err
}

// callsBetween selects the scope's model calls in a time range.
func (r *ModelCalls) callsBetween(ctx context.Context, tenant core.Tenant, from, to time.Time) *gorm.DB {
	return r.db.WithContext(ctx).Model(&core.ModelCall{}).Where(inScope(tenant)).Where("created_at >= ? AND created_at < ?", from.UTC(), to.UTC())
}

// usageBetween selects the scope's usage in a time range, at a level narrowed to the
// scope's user: whole days, and the calls of partial days as if each were a day.
func (r *ModelCalls) usageBetween(ctx context.Context, tenant core.Tenant, q core.UsageQuery, level string) *gorm.DB {
	const day = 24 * time.Hour
	from, to := q.From.UTC(), q.To.UTC()
	first, last := from.Truncate(day), to.Truncate(day)
	if first.Before(from) {
		first = first.Add(day)
	}
	if last.Before(first) { // within one day
		first, last = to, to
	}
	db := r.db.WithContext(ctx)
	whole := db.Model(&models.UsageDay{}).Where("owner = ? AND day >= ? AND day < ?", tenant.Owner, usageDay(first), usageDay(last))
	switch {
	case tenant.User != "" && level == models.UsageOfSession:
		whole = whole.Where("level = ? AND user_id = ?", models.UsageOfUserSession, tenant.User)
	case tenant.User != "":
		whole = whole.Where("level = ? AND user_id = ?", models.UsageOfUser, tenant.User)
	case level == models.UsageOfUser:
		whole = whole.Where("level = ?", level)
	default:
		whole = whole.Where("level = ? AND user_id = ''", level)
	}
	if first.Equal(from) && last.Equal(to) {
		return whole
	}
	const counters = "agent, model, calls, input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_write_tokens, cost_micro_usd, unpriced_calls"
	dayOfCall := "substr(created_at, 1, 10)" // SQLite stores times as text in UTC
	if isPostgres(db) {
		dayOfCall = "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
	}
	single := dayOfCall + " AS day, user_id, COALESCE(CAST(session_id AS text), '') AS session_id, agent, model, 1 AS calls, " +
		"input_tokens, output_tokens, reasoning_tokens, cache_read_tokens, cache_write_tokens, " +
		"COALESCE(cost_micro_usd, 0) AS cost_micro_usd, " + unpricedSQL + " AS unpriced_calls"
	return db.Table("(? UNION ALL ? UNION ALL ?) AS u", whole.Select("day, user_id, session_id, "+counters),
		r.callsBetween(ctx, tenant, from, first).Select(single), r.callsBetween(ctx, tenant, last, to).Select(single))
}

// clockSkew is how far the clock of a process may be from that of another one.
const clockSkew = time.Minute

// OfRun returns the calls of a run, in the order in which they ended. The caller must have checked
// access to the run. It reads the owner's calls of the run's time: a session may have any number.
func (r *ModelCalls) OfRun(ctx context.Context, run core.Run) ([]core.ModelCall, error) {
	db := byID(ctx, r.db, "run", run.ID)
	if run.StartedAt == nil {
		return nil, db.Error
	}
	calls := db.Where("owner = ? AND run_id = ? AND created_at >= ?", run.Owner, run.ID, run.StartedAt.UTC().Add(-clockSkew))
	if run.FinishedAt != nil {
		calls = calls.Where("created_at <= ?", run.FinishedAt.UTC().Add(clockSkew))
	}
	list, err := findRows[core.ModelCall](calls.Order("created_at, id"))
	return list, wrapError(err, "run", run.ID)
}

// Spent returns the usage of the owner's model calls on the UTC day that begins at the
// given time.
func (r *ModelCalls) Spent(ctx context.Context, owner string, day time.Time) (core.Spent, error) {
	var sum struct{ Tokens, Micro int64 }
	err := r.db.WithContext(ctx).Model(&models.UsageDay{}).Where("owner = ? AND level = ? AND user_id = '' AND session_id = '' AND day = ?", owner, models.UsageOfAll, usageDay(day)).
		Select("CAST(COALESCE(SUM(spent_tokens), 0) AS bigint) AS tokens, CAST(COALESCE(SUM(cost_micro_usd), 0) AS bigint) AS micro").Scan(&sum).Error
	return core.Spent{Tokens: sum.Tokens, MicroUSD: sum.Micro}, wrapError(err, "usage of", owner)
}

// usageShards is the number of rows for the usage of a day that many sessions add to:
// transactions that add to one row wait for each other.
const usageShards = 8

// usageDay is the text of a day in usage_days.
func usageDay(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// callUsage returns the usage of a call.
func callUsage(c core.ModelCall) core.UsageTotal {
	t := core.UsageTotal{
		Calls: 1, InputTokens: int64(c.Usage.InputTokens), OutputTokens: int64(c.Usage.OutputTokens), ReasoningTokens: int64(c.Usage.ReasoningTokens),
		CacheReadTokens: int64(c.Usage.CacheReadTokens), CacheWriteTokens: int64(c.Usage.CacheWriteTokens),
	}
	if c.Cost != nil {
		t.CostMicroUSD = *c.Cost
	}
	// A call that failed before any output has no missing price; one that was canceled during the output has.
	if c.Cost == nil && (c.Error == "" || c.Error == "canceled" || c.Usage.InputTokens > 0) {
		t.UnpricedCalls = 1
	}
	return t
}

// usageDays returns the rows of all levels for a call. The days of a user have a single shard.
func usageDays(c core.ModelCall, shard int) []models.UsageDay {
	d := models.UsageDay{
		Owner: c.Owner, UserID: c.User, Day: usageDay(c.CreatedAt), Agent: c.Agent, Model: c.Model,
		UsageTotal: callUsage(c), SpentTokens: int64(c.Usage.InputTokens + c.Usage.OutputTokens),
	}
	if d.SpentTokens == 0 && (c.Error == "" || c.Error == "canceled") { // the provider did not report them
		d.SpentTokens = int64(c.Estimated)
	}
	all, ofUser, ofSession := d, d, d
	all.Level, all.UserID, all.Shard = models.UsageOfAll, "", shard
	ofUser.Level = models.UsageOfUser
	if d.UserID == "" {
		ofUser.Shard = shard
	}
	ofSession.Level, ofSession.SessionID, ofSession.UserID, ofSession.Agent, ofSession.Model = models.UsageOfSession, string(c.SessionID), "", "", ""
	days := []models.UsageDay{all, ofUser, ofSession}
	if d.UserID != "" {
		ofUserSession := ofSession
		ofUserSession.Level, ofUserSession.UserID = models.UsageOfUserSession, d.UserID
		days = append(days, ofUserSession)
	}
	return days
}

// usageShard returns the shard that the session or call with the id adds to.
func usageShard(id string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return int(h.Sum32() % usageShards)
}

// sumUsage returns a plus b times a factor.
func sumUsage(a, b core.UsageTotal, times int64) core.UsageTotal {
	a.Calls += times * b.Calls
	a.InputTokens += times * b.InputTokens
	a.OutputTokens += times * b.OutputTokens
	a.ReasoningTokens += times * b.ReasoningTokens
	a.CacheReadTokens += times * b.CacheReadTokens
	a.CacheWriteTokens += times * b.CacheWriteTokens
	a.CostMicroUSD += times * b.CostMicroUSD
	a.UnpricedCalls += times * b.UnpricedCalls
	return a
}

// sumDays sums the usage of each day, in a fixed order, which prevents deadlocks.
func sumDays(days []models.UsageDay) []models.UsageDay {
	sums := map[models.UsageDay]models.UsageDay{} // by their keys
	for _, d := range days {
		key := d
		key.UsageTotal, key.SpentTokens = core.UsageTotal{}, 0
		sum, ok := sums[key]
		if !ok {
			sum = key
		}
		sum.UsageTotal, sum.SpentTokens = sumUsage(sum.UsageTotal, d.UsageTotal, 1), sum.SpentTokens+d.SpentTokens
		sums[key] = sum
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b models.UsageDay) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), strings.Compare(a.Level, b.Level), strings.Compare(a.UserID, b.UserID), strings.Compare(a.SessionID, b.SessionID),
			strings.Compare(a.Day, b.Day), strings.Compare(a.Agent, b.Agent), strings.Compare(a.Model, b.Model), cmp.Compare(a.Shard, b.Shard))
	})
}

// callsLocked locks model calls in order: the purges of a user and of a session may move the same ones.
func callsLocked(tx *gorm.DB) *gorm.DB {
	return tx.Scopes(withRowLock("model_calls", clause.LockingStrengthUpdate)).Order("model_calls.id")
}

// forgetUsage takes the users off calls of one owner, and with session the session, and moves what the calls added to the
// days of these to rows without them.
func forgetUsage(tx *gorm.DB, calls []core.ModelCall, session bool) error {
	var moved []models.UsageDay
	ids, users, sessions, changes := []string{}, []string{""}, []core.SessionID{""}, map[string]any{"user_id": ""}
	if session {
		changes = map[string]any{"user_id": "", "session_id": nil, "run_id": nil}
	}
	for _, c := range calls {
		ids, users, sessions = append(ids, c.ID), append(users, c.User), append(sessions, c.SessionID)
		shard := usageShard(cmp.Or(string(c.SessionID), c.ID))
		for _, d := range usageDays(c, shard) {
			d.UsageTotal, d.SpentTokens = sumUsage(core.UsageTotal{}, d.UsageTotal, -1), -d.SpentTokens
			moved = append(moved, d)
		}
		if c.User = ""; session {
			c.SessionID = ""
		}
		moved = append(moved, usageDays(c, shard)...)
	}
	if len(calls) == 0 {
		return nil
	}
	moved = slices.DeleteFunc(sumDays(moved), func(d models.UsageDay) bool { return d.Calls == 0 })
	if err := commit.Insert(tx, moved); err != nil {
		return err
	}
	err := tx.Where("owner = ? AND level IN ? AND user_id IN ? AND session_id IN ? AND calls <= 0", calls[0].Owner,
		[]string{models.UsageOfUser, models.UsageOfSession, models.UsageOfUserSession}, unique(users), unique(sessions)).Delete(&models.UsageDay{}).Error
	if err != nil {
		return err
	}
	return tx.Model(&core.ModelCall{}).Where("id IN ?", ids).UpdateColumns(changes).Error
}

// unique returns the values in order, each once.
func unique[T cmp.Ordered](list []T) []T { return slices.Compact(slices.Sorted(slices.Values(list))) }

// Calibrations stores the token calibration of models. Safe for concurrent use.
type Calibrations struct{ db *gorm.DB }

// NewCalibrations returns the calibrations in db.
func NewCalibrations(db *gorm.DB) *Calibrations { return &Calibrations{db: db} }

// All returns every calibration, ordered by model.
func (r *Calibrations) All(ctx context.Context) ([]core.Calibration, error) {
	list, err := findRows[core.Calibration](r.db.WithContext(ctx).Order("model"))
	return list, wrapError(err, "calibrations", "")
}

// Save stores the calibrations of different models, replacing those of the same models.
func (r *Calibrations) Save(ctx context.Context, list []core.Calibration) error {
	// A fixed order prevents deadlocks between replicas.
	rows := slices.SortedFunc(slices.Values(list), func(a, b core.Calibration) int { return cmp.Compare(a.Model, b.Model) })
	for i := range rows {
		if rows[i].UpdatedAt.IsZero() {
			rows[i].UpdatedAt = core.Now()
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return wrapError(r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error, "calibrations", "")
}
