package commit

import (
	"reflect"
	"strings"

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

// sessionUpdate returns the UPDATE of a session; false if it changes other columns.
func sessionUpdate(before, after models.Session) (statement, bool) {
	b, a, same := before.Usage, after.Usage, before
	same.LastEventSeq, same.LastQueueSeq, same.LastSeq, same.MessageCount, same.UpdatedAt = after.LastEventSeq, after.LastQueueSeq, after.LastSeq, after.MessageCount, after.UpdatedAt
	same.Speakers, same.StandingCount, same.StoredBytes, same.Usage = after.Speakers, after.StandingCount, after.StoredBytes, after.Usage
	values := []any{
		after.LastEventSeq - before.LastEventSeq, after.LastQueueSeq, after.LastSeq, after.MessageCount, after.UpdatedAt, after.Speakers,
		after.StandingCount - before.StandingCount, after.StoredBytes - before.StoredBytes, a.Calls - b.Calls, a.InputTokens - b.InputTokens,
		a.OutputTokens - b.OutputTokens, a.ReasoningTokens - b.ReasoningTokens, a.CacheReadTokens - b.CacheReadTokens,
		a.CacheWriteTokens - b.CacheWriteTokens, a.CostMicroUSD - b.CostMicroUSD, a.UnpricedCalls - b.UnpricedCalls,
		before.ID, before.LastEventSeq, before.ArchivedAt == nil,
	}
	return statement{target: sessionUpdateSQL, kinds: strings.Fields(sessionKinds), rows: [][]any{values}}, reflect.DeepEqual(same, after)
}

// runUpdate is refused unless the attempt owns the run. NULL leaves what there is.
const runUpdate = `UPDATE runs SET status = COALESCE(%, status), answer_id = COALESCE(%, answer_id), error = COALESCE(%, error), finished_at = COALESCE(%, finished_at),
state = COALESCE(%, state), context = COALESCE(%, context), partial = COALESCE(%, partial), last_write = COALESCE(%, last_write),
lease_owner = CASE WHEN % THEN '' ELSE lease_owner END, lease_until = CASE WHEN % THEN NULL ELSE lease_until END,
input_tokens = input_tokens + %, output_tokens = output_tokens + %, reasoning_tokens = reasoning_tokens + %,
cache_read_tokens = cache_read_tokens + %, cache_write_tokens = cache_write_tokens + %
 WHERE runs.id = % AND attempt = % AND status = 'running' AND (last_write <> % OR last_write = '')`

const runKinds = "text uuid jsonb timestamptz jsonb jsonb text text boolean boolean bigint bigint bigint bigint bigint uuid bigint text"

// Run is a write of the attempt that the row has, which is then as the row says. What is nil of the others
// stays as it is.
type Run struct {
	Row            models.Run
	Write          string // core.RunWrite.ID
	State, Context models.JSON
	Partial        *string
	Usage          core.Usage // to add
}

// UpdateRun adds a write of the session's run, which the attempt must own. Alone it reports whether it does.
func (ch *Change) UpdateRun(r Run) (owned bool, err error) {
	ended := r.Row.FinishedAt != nil
	n, err := ch.Update(runUpdate, runKinds,
		r.Row.Status, r.Row.AnswerID, r.Row.Error, r.Row.FinishedAt, r.State, r.Context, r.Partial, models.Ref(r.Write), ended, ended,
		r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.ReasoningTokens, r.Usage.CacheReadTokens, r.Usage.CacheWriteTokens,
		r.Row.ID, r.Row.Attempt, r.Write)
	return n > 0, err
}
