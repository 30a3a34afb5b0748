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

	"bobbin/app/core"
	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

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

// usageDays returns the rows of all levels for a call of the session; empty = of none. The days
// of a user have a single shard.
func usageDays(c core.ModelCall, session string, shard int) []models.UsageDay {
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
	ofSession.Level, ofSession.SessionID, ofSession.UserID, ofSession.Agent, ofSession.Model = models.UsageOfSession, session, "", "", ""
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

// forgetUserDays moves the usage of a user's days to rows without a user, some days in a
// transaction, and counts the rows that named the user.
func (r *Purges) forgetUserDays(ctx context.Context, owner, user string, gone *core.Purged) error {
	named := func(db *gorm.DB, level string) *gorm.DB {
		return db.Model(&models.UsageDay{}).Where("owner = ? AND level = ? AND user_id = ?", owner, level, user)
	}
	var days, sessions []string
	db := r.db.WithContext(ctx)
	err := named(db, models.UsageOfUser).Distinct("day").Order("day").Pluck("day", &days).Error
	if err == nil {
		err = named(db, models.UsageOfUserSession).Distinct("session_id").Pluck("session_id", &sessions).Error
	}
	if err != nil {
		return err
	}
	err = purgeParts(ctx, r.db, days, gone, func(tx *gorm.DB, part []string, gone *core.Purged) error {
		which := named(tx, models.UsageOfUser).Where("day IN ?", part).Session(&gorm.Session{})
		rows, err := findRows[models.UsageDay](which)
		for i := range rows {
			rows[i].UserID = ""
		}
		if err == nil {
			err = commit.Insert(tx, sumDays(rows))
		}
		if err != nil {
			return err
		}
		res := which.Delete(&models.UsageDay{})
		gone.Empty("usage_days", res.RowsAffected)
		return res.Error
	})
	if err != nil {
		return err
	}
	return purgeParts(ctx, r.db, sessions, gone, func(tx *gorm.DB, part []string, gone *core.Purged) error {
		res := named(tx, models.UsageOfUserSession).Where("session_id IN ?", part).Delete(&models.UsageDay{})
		gone.Empty("usage_days", res.RowsAffected)
		return res.Error
	})
}

// forgetUsers moves what the calls added to the days of users to rows without a user.
func (stx *sessionTx) forgetUsers(ids []string) error {
	calls, err := findRows[core.ModelCall](stx.tx.Where("id IN ? AND user_id <> ''", ids))
	if err != nil || len(calls) == 0 {
		return err
	}
	var moved []models.UsageDay
	users := map[string]bool{}
	for _, c := range calls {
		d := usageDays(c, "", 0)[1] // of the user
		users[d.UserID] = true
		anonymous, less := d, d
		anonymous.UserID, anonymous.Shard = "", usageShard(string(stx.session.ID))
		less.UsageTotal, less.SpentTokens = sumUsage(core.UsageTotal{}, d.UsageTotal, -1), -d.SpentTokens
		moved = append(moved, anonymous, less)
	}
	if err := commit.Insert(stx.tx, sumDays(moved)); err != nil {
		return err
	}
	names := slices.Collect(maps.Keys(users))
	gone := stx.tx.Where("owner = ? AND level = ? AND user_id IN ?", stx.session.Owner, models.UsageOfUserSession, names).Where("session_id = ?", stx.session.ID)
	if err := gone.Delete(&models.UsageDay{}).Error; err != nil {
		return err
	}
	return stx.tx.Where("owner = ? AND level = ? AND user_id IN ? AND calls <= 0", stx.session.Owner, models.UsageOfUser, names).Delete(&models.UsageDay{}).Error
}
