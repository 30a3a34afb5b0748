package repositories

import (
	"cmp"
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
