package commit

import (
	"cmp"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// sessionUpdateSQL adds to what others add to as well.
const sessionUpdateSQL = `UPDATE sessions SET last_event_seq = last_event_seq + %, last_queue_seq = %, last_seq = %, message_count = %, updated_at = %, speakers = %,
standing_count = standing_count + %, stored_bytes = stored_bytes + %, usage_calls = usage_calls + %, usage_input_tokens = usage_input_tokens + %,
usage_output_tokens = usage_output_tokens + %, usage_reasoning_tokens = usage_reasoning_tokens + %, usage_cache_read_tokens = usage_cache_read_tokens + %,
usage_cache_write_tokens = usage_cache_write_tokens + %, usage_cost_micro_usd = usage_cost_micro_usd + %, usage_unpriced_calls = usage_unpriced_calls + %
 WHERE sessions.id = % AND last_event_seq = % AND busy = '' AND (archived_at IS NULL) = %`

const sessionKinds = "bigint bigint bigint bigint timestamptz text bigint bigint bigint bigint bigint bigint bigint bigint bigint bigint uuid bigint boolean"

// Sets reports whether a change can set the column of a session.
func Sets(column string) bool {
	return strings.Contains(sessionUpdateSQL, " "+column+" = ") || strings.Contains(sessionUpdateSQL, "\n"+column+" = ")
}

func sessionUpdate(before, after models.Session) statement {
	b, a := before.Usage, after.Usage
	return statement{update: sessionUpdateSQL, kinds: strings.Fields(sessionKinds), rows: [][]any{{
		after.LastEventSeq - before.LastEventSeq, after.LastQueueSeq, after.LastSeq, after.MessageCount, after.UpdatedAt, after.Speakers,
		after.StandingCount - before.StandingCount, after.StoredBytes - before.StoredBytes, a.Calls - b.Calls, a.InputTokens - b.InputTokens,
		a.OutputTokens - b.OutputTokens, a.ReasoningTokens - b.ReasoningTokens, a.CacheReadTokens - b.CacheReadTokens,
		a.CacheWriteTokens - b.CacheWriteTokens, a.CostMicroUsd - b.CostMicroUsd, a.UnpricedCalls - b.UnpricedCalls,
		before.ID, before.LastEventSeq, before.ArchivedAt == nil,
	}}}
}

// runUpdate is refused unless the attempt owns the run. NULL leaves what there is.
const runUpdate = `UPDATE runs SET status = COALESCE(%, status), answer_id = COALESCE(%, answer_id), error = COALESCE(%, error), finished_at = COALESCE(%, finished_at),
state = COALESCE(%, state), context = COALESCE(%, context), partial = COALESCE(%, partial), last_write = COALESCE(%, last_write),
lease_owner = CASE WHEN % THEN '' ELSE lease_owner END, lease_until = CASE WHEN % THEN NULL ELSE lease_until END,
input_tokens = input_tokens + %, output_tokens = output_tokens + %, reasoning_tokens = reasoning_tokens + %,
cache_read_tokens = cache_read_tokens + %, cache_write_tokens = cache_write_tokens + %
 WHERE runs.id = % AND attempt = % AND status = 'running' AND (last_write <> % OR last_write = '')`

const runKinds = "text uuid jsonb timestamptz jsonb jsonb text text boolean boolean bigint bigint bigint bigint bigint uuid bigint text"

// Run is a write of an attempt at a run. Empty fields leave what there is.
type Run struct {
	ID       string
	Attempt  int
	Write    models.Ref // core.RunWrite.ID
	Status   models.Ref
	Answer   models.Ref
	Error    models.JSON
	Finished *time.Time // the run has ended
	State    models.JSON
	Context  models.JSON
	Partial  *string
	Usage    models.Usage // to add
}

func (r Run) values() ([]any, error) {
	u := r.Usage
	return storables([]any{
		r.Status, r.Answer, r.Error, r.Finished, r.State, r.Context, r.Partial, r.Write, r.Finished != nil, r.Finished != nil,
		u.InputTokens, u.OutputTokens, u.ReasoningTokens, u.CacheReadTokens, u.CacheWriteTokens, r.ID, r.Attempt, string(r.Write),
	})
}

// UpdateRun adds a write of the session's run, which the attempt must own.
func (ch *Change) UpdateRun(r Run) error {
	values, err := r.values()
	ch.Update(runUpdate, strings.Fields(runKinds), values...)
	return err
}

// Exec is UpdateRun in a transaction; it reports whether the attempt owns the run.
func (r Run) Exec(tx *gorm.DB) (owned bool, err error) {
	values, err := r.values()
	if err != nil {
		return false, err
	}
	n, err := statement{update: runUpdate, rows: [][]any{values}}.execute(tx)
	return n > 0, err
}

// Apply changes the row of the run as the write does.
func (r Run) Apply(row *models.Run) {
	row.Status, row.AnswerID, row.LastWrite = string(cmp.Or(r.Status, models.Ref(row.Status))), cmp.Or(r.Answer, row.AnswerID), string(cmp.Or(r.Write, models.Ref(row.LastWrite)))
	for to, from := range map[*models.JSON]models.JSON{&row.Error: r.Error, &row.State: r.State, &row.Context: r.Context} {
		if from != nil {
			*to = from
		}
	}
	if r.Partial != nil {
		row.Partial = *r.Partial
	}
	if r.Finished != nil {
		row.FinishedAt, row.LeaseOwner, row.LeaseUntil = r.Finished, "", nil
	}
	row.Usage = models.Usage(core.Usage(row.Usage).Add(core.Usage(r.Usage)))
}
