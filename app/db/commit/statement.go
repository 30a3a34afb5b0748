package commit

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// statement inserts rows into a table, or updates some for each row of values. Its SQL is constant:
// building one costs more than executing it.
type statement struct {
	target string   // the table, or an UPDATE with % for each value
	table  *table   // nil for an UPDATE
	kinds  []string // types of the values on PostgreSQL
	rows   [][]any  // of values behind the id of the session, for the other statements of its change
}

// table is a model's.
type table struct {
	fields   []*schema.Field
	kinds    []string
	insert   string // the beginning of an INSERT
	conflict string // its end: usage is added to what there is; of other tables the rows are new
}

// usageKeys is how many of the first columns of usage_days are its key.
const usageKeys = 8

func newTable(s *schema.Schema) *table {
	t := &table{insert: `INSERT INTO "` + s.Table + `" (` + strings.Join(s.DBNames, ", ") + ") "}
	kinds := map[schema.DataType]string{schema.String: "text", schema.Int: "bigint", schema.Uint: "bigint", schema.Bool: "boolean", schema.Time: "timestamptz"}
	var add []string
	for _, name := range s.DBNames {
		f := s.FieldsByDBName[name]
		kind := kinds[f.DataType]
		if kind == "" {
			kind = string(f.DataType) // of the model
		}
		t.fields, t.kinds, add = append(t.fields, f), append(t.kinds, kind), append(add, name+" = usage_days."+name+" + excluded."+name)
	}
	if s.Table == "usage_days" {
		t.conflict = " ON CONFLICT (" + strings.Join(s.DBNames[:usageKeys], ", ") + ") DO UPDATE SET " + strings.Join(add[usageKeys:], ", ")
	}
	return t
}

// insertOf returns the INSERT of the rows, a pointer to a row or a slice, for a change of the session.
func insertOf(g *gorm.DB, session core.SessionID, rows any) (statement, error) {
	v := reflect.Indirect(reflect.ValueOf(rows))
	if v.Kind() == reflect.Struct {
		v = reflect.Append(reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, 1), v)
	}
	stmt := &gorm.Statement{DB: g}
	if err := stmt.Parse(rows); err != nil {
		return statement{}, err
	}
	tables := &Of(g).tables
	t, ok := tables.Load(stmt.Schema)
	if !ok {
		t, _ = tables.LoadOrStore(stmt.Schema, newTable(stmt.Schema))
	}
	s := statement{target: stmt.Schema.Table, table: t.(*table), kinds: t.(*table).kinds, rows: make([][]any, v.Len())}
	for i := range s.rows {
		values := append(make([]any, 0, 1+len(s.table.fields)), string(session))
		for _, f := range s.table.fields {
			value, _ := f.ValueOf(g.Statement.Context, v.Index(i))
			values = append(values, value)
		}
		if err := convert(values); err != nil {
			return s, err
		}
		s.rows[i] = values
	}
	return s, nil
}

// Insert inserts the rows.
func Insert(g *gorm.DB, rows any) error { return Alone(g).Insert(rows) }

// convert makes the values what drivers take, ErrInvalid for JSON that cannot be stored.
func convert(values []any) (err error) {
	for i, v := range values {
		if values[i], err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
			return err
		}
	}
	return nil
}

// maxRows bounds the rows of an INSERT.
const maxRows = 64

// execute executes the statement, and returns how many rows it has written.
func (s statement) execute(tx *gorm.DB) (n int64, err error) {
	type key struct {
		target string
		rows   int
	}
	texts := &Of(tx).texts
	for part := range slices.Chunk(s.rows, maxRows) {
		k := key{s.target, len(part)}
		sql, ok := texts.Load(k)
		if !ok {
			text := s.target
			if s.table != nil {
				row := ", (" + strings.Repeat("%, ", len(s.kinds)-1) + "%)"
				text = s.table.insert + "VALUES " + strings.Repeat(row, len(part))[2:] + s.table.conflict
			}
			sql = numberPlaceholders(tx, text, "%")
			texts.Store(k, sql)
		}
		args := make([]any, 0, len(part)*len(s.kinds))
		for _, row := range part {
			args = append(args, row[1:]...)
		}
		res := Text(tx, sql.(string), args...)
		res.Callback().Raw().Execute(res)
		if res.Error != nil {
			return n, res.Error
		}
		n += res.RowsAffected
	}
	return n, nil
}

// numberPlaceholders returns the statement with the placeholders of the dialect for its values.
func numberPlaceholders(g *gorm.DB, sql, value string) string {
	var text strings.Builder
	for i, part := range strings.Split(sql, value) {
		if i > 0 {
			g.BindVarTo(&text, &gorm.Statement{Vars: make([]any, i)}, nil)
		}
		text.WriteString(part)
	}
	return text.String()
}

// Text returns g with a statement as the driver gets it, for Take, Scan and the callbacks of Exec. gorm's Raw
// and Exec copy SQL byte by byte, which takes longer than some statements. No value may be a list.
func Text(g *gorm.DB, sql string, values ...any) *gorm.DB {
	tx := g.Raw("")
	tx.Statement.SQL.WriteString(sql)
	tx.Statement.Vars = values
	return tx
}

// sessionUpdateSQL adds to what others add to as well.
const sessionUpdateSQL = `UPDATE sessions SET last_event_seq = last_event_seq + %, last_queue_seq = %, last_seq = %, message_count = %, updated_at = %, speakers = %,
stored_bytes = stored_bytes + %, usage_calls = usage_calls + %, usage_input_tokens = usage_input_tokens + %,
usage_output_tokens = usage_output_tokens + %, usage_reasoning_tokens = usage_reasoning_tokens + %, usage_cache_read_tokens = usage_cache_read_tokens + %,
usage_cache_write_tokens = usage_cache_write_tokens + %, usage_cost_micro_usd = usage_cost_micro_usd + %, usage_unpriced_calls = usage_unpriced_calls + %
 WHERE sessions.id = % AND last_event_seq = % AND busy = '' AND (archived_at IS NULL) = %
AND (NOT % OR NOT EXISTS (SELECT 1 FROM owner_webhooks WHERE owner_webhooks.owner = sessions.owner))`

const sessionKinds = "bigint bigint bigint bigint timestamptz text bigint bigint bigint bigint bigint bigint bigint bigint bigint uuid bigint boolean boolean"

// sessionUpdate returns the UPDATE of a session; false if it changes other columns.
func sessionUpdate(before, after models.Session, noWebhook bool) (statement, bool) {
	b, a, same := before.Usage, after.Usage, before
	same.LastEventSeq, same.LastQueueSeq, same.LastSeq, same.MessageCount, same.UpdatedAt = after.LastEventSeq, after.LastQueueSeq, after.LastSeq, after.MessageCount, after.UpdatedAt
	same.Speakers, same.StoredBytes, same.Usage = after.Speakers, after.StoredBytes, after.Usage
	values := []any{
		string(before.ID), after.LastEventSeq - before.LastEventSeq, after.LastQueueSeq, after.LastSeq, after.MessageCount, after.UpdatedAt, after.Speakers,
		after.StoredBytes - before.StoredBytes, a.Calls - b.Calls, a.InputTokens - b.InputTokens,
		a.OutputTokens - b.OutputTokens, a.ReasoningTokens - b.ReasoningTokens, a.CacheReadTokens - b.CacheReadTokens,
		a.CacheWriteTokens - b.CacheWriteTokens, a.CostMicroUSD - b.CostMicroUSD, a.UnpricedCalls - b.UnpricedCalls,
		before.ID, before.LastEventSeq, before.ArchivedAt == nil, noWebhook,
	}
	return statement{target: sessionUpdateSQL, kinds: strings.Fields(sessionKinds), rows: [][]any{values}}, reflect.DeepEqual(same, after)
}

// runUpdate is refused unless the attempt owns the run, to be canceled or not as it says. NULL leaves what there is.
const runUpdate = `UPDATE runs SET status = COALESCE(%, status), answer_id = COALESCE(%, answer_id), error = COALESCE(%, error), finished_at = COALESCE(%, finished_at),
state = COALESCE(%, state), context = COALESCE(%, context), partial = COALESCE(%, partial), last_write = COALESCE(%, last_write),
lease_owner = CASE WHEN % THEN '' ELSE lease_owner END, lease_until = CASE WHEN % THEN NULL ELSE lease_until END,
input_tokens = input_tokens + %, output_tokens = output_tokens + %, reasoning_tokens = reasoning_tokens + %,
cache_read_tokens = cache_read_tokens + %, cache_write_tokens = cache_write_tokens + %
 WHERE cancel_requested = % AND runs.id = % AND attempt = % AND status = 'running' AND (last_write <> % OR last_write = '')`

const runKinds = "text uuid jsonb timestamptz jsonb json text text boolean boolean bigint bigint bigint bigint bigint boolean uuid bigint text"

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
		r.Row.Status, models.Ref(r.Row.AnswerID), models.EncodeJSON(r.Row.Error), r.Row.FinishedAt, r.State, r.Context, r.Partial, models.Ref(r.Write), ended, ended,
		r.Usage.InputTokens, r.Usage.OutputTokens, r.Usage.ReasoningTokens, r.Usage.CacheReadTokens, r.Usage.CacheWriteTokens,
		r.Row.CancelRequested, r.Row.ID, r.Row.Attempt, r.Write)
	return n > 0, err
}

// writePostgres writes the changes in one statement, except those of sessions and runs that are locked
// or that have changed: so it waits for no transaction that may wait for it. An error of one undoes all.
func (c *Commits) writePostgres(g *gorm.DB, changes []*Change) error {
	all, n := join(changes), 0
	for _, j := range all {
		n += len(j.rows)
	}
	single := len(changes) == 1 && n <= maxSingle
	var args []any
	tables := make([]string, len(all))
	for i, j := range all {
		tables[i] = j.target
		if single {
			tables[i] += fmt.Sprint(len(j.rows))
			args = append(args, slices.Concat(j.rows...)...)
			continue
		}
		for k := range j.kinds {
			args = append(args, column{j.rows, k})
		}
	}
	key := strings.Join(tables, " ")
	sql, ok := c.texts.Load(key)
	if !ok {
		sql = numberPlaceholders(g, textOf(all, single), "?")
		c.texts.Store(key, sql)
	}
	var written []core.SessionID
	err := Text(g, sql.(string), args...).Scan(&written).Error
	for _, ch := range changes {
		ch.written = err == nil && slices.Contains(written, ch.session.ID)
	}
	return err
}

// maxSingle bounds the rows of a change alone whose values are parameters: for each array PostgreSQL calls a
// function and keeps its rows, which costs more than writing one.
const maxSingle = 16

// joined is a statement for the rows of all changes; their first value is the id of the session.
type joined struct {
	statement

	name string // of its rows in the text
}

// join returns the statements of the changes, each once, in an order of their own after that of the sessions.
func join(changes []*Change) []*joined {
	var all []*joined
	of := map[string]*joined{}
	for _, ch := range changes {
		for _, s := range ch.all {
			j := of[s.target]
			if j == nil {
				j = &joined{statement: statement{target: s.target, table: s.table, kinds: append([]string{"uuid"}, s.kinds...)}}
				of[s.target], all = j, append(all, j)
			}
			j.rows = append(j.rows, s.rows...)
		}
	}
	slices.SortFunc(all[1:], func(a, b *joined) int { return cmp.Compare(a.target, b.target) })
	return all
}

// textOf returns the statement. It depends only on which statements it joins, as the rows are arrays, and for
// a single change on how many rows they have.
func textOf(all []*joined, single bool) string {
	with, owned, notOwned := []string{}, "", ""
	for i, j := range all {
		j.name = fmt.Sprintf("u%d", i)
		with = append(with, j.name+" AS (SELECT u.* FROM "+j.from(single)+")")
		if j.target == runUpdate {
			_, where := j.setWhere()
			owned = "owned AS (SELECT runs.id FROM " + j.name + " JOIN runs ON " + where + " FOR NO KEY UPDATE OF runs SKIP LOCKED)"
			notOwned = " WHERE NOT EXISTS (SELECT 1 FROM " + j.name + " WHERE " + j.at(0) + " = sessions.id AND NOT EXISTS (SELECT 1 FROM owned WHERE owned.id = " + j.at(len(j.kinds)-3) + "))"
		}
	}
	if owned != "" {
		with = append(with, owned)
	}
	_, where := all[0].setWhere()
	with = append(with, "ok AS (SELECT sessions.id FROM u0 JOIN sessions ON "+where+notOwned+" FOR NO KEY UPDATE OF sessions SKIP LOCKED)")
	for _, j := range all {
		with = append(with, "w"+j.name+" AS ("+j.sql()+")")
	}
	return "WITH " + strings.Join(with, ",\n") + "\nSELECT id FROM ok"
}

func (j *joined) at(i int) string { return fmt.Sprintf("%s.v%d::%s", j.name, i, j.kinds[i]) }

// from returns the rows as a table, an array for each column, or as parameters. OFFSET hides from the planner how long the
// arrays are: a plan for each length would be no better, but be made each time, for longer than it takes.
func (j *joined) from(single bool) string {
	arrays, names, parts, values := make([]string, len(j.kinds)), make([]string, len(j.kinds)), make([]string, len(j.kinds)), ""
	for i, kind := range j.kinds {
		values += ", ?::" + kind
		if kind == "uuid" || kind == "json" || kind == "jsonb" {
			kind = "text"
		}
		arrays[i], names[i], parts[i] = fmt.Sprintf("?::%s[] AS a%d", kind, i), fmt.Sprintf("v%d", i), fmt.Sprintf("p.a%d", i)
	}
	if single {
		return "(VALUES " + strings.Repeat(", ("+values[2:]+")", len(j.rows))[2:] + ") AS u (" + strings.Join(names, ", ") + ")"
	}
	return "(SELECT " + strings.Join(arrays, ", ") + " OFFSET 0) AS p, unnest(" + strings.Join(parts, ", ") + ") AS u (" + strings.Join(names, ", ") + ")"
}

// setWhere returns the two parts of an UPDATE.
func (j *joined) setWhere() (set, where string) {
	sql := j.target
	for i := 1; i < len(j.kinds); i++ {
		sql = strings.Replace(sql, "%", j.at(i), 1)
	}
	set, where, _ = strings.Cut(sql, " WHERE ")
	return set, where
}

// sql is the statement for the sessions that are ok. Usage is summed, as a statement may add to a row once,
// and in a fixed order, which prevents deadlocks.
func (j *joined) sql() string {
	from := " FROM " + j.name + " JOIN ok ON ok.id = " + j.at(0)
	if j.table == nil {
		set, where := j.setWhere()
		return set + from + " WHERE " + where
	}
	var values, keys, order []string
	end := j.table.conflict
	for i := range j.table.fields {
		v := j.at(i + 1)
		switch {
		case end != "" && i >= usageKeys:
			v = "sum(" + v + ")"
		case end != "":
			keys, order = append(keys, v), append(order, v+map[bool]string{true: ` COLLATE "C"`}[j.kinds[i+1] == "text"])
		}
		values = append(values, v)
	}
	if end != "" {
		end = " GROUP BY " + strings.Join(keys, ", ") + " ORDER BY " + strings.Join(order, ", ") + end
	}
	return j.table.insert + "SELECT " + strings.Join(values, ", ") + from + end
}

// column is an array for unnest that gorm passes on whole: a value of each row.
type column struct {
	rows [][]any
	k    int
}

// Value is never called, as pgx prefers the other methods.
func (c column) Value() (driver.Value, error) { return nil, driver.ErrSkip }

// Dimensions is part of pgtype.ArrayGetter.
func (c column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c.rows)), LowerBound: 1}} //nolint:gosec // a batch is bounded
}

// Index is part of pgtype.ArrayGetter.
func (c column) Index(i int) any { return c.rows[i][c.k] }

// IndexType is part of pgtype.ArrayGetter: the values have their own types.
func (c column) IndexType() any { return nil }
