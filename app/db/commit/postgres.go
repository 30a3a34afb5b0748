package commit

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"bobbin/app/core"
)

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
			list := make(column, len(j.rows))
			for n, row := range j.rows {
				list[n] = row[k]
			}
			args = append(args, list)
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
			for _, row := range s.rows {
				j.rows = append(j.rows, append([]any{string(ch.session.ID)}, row...))
			}
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

// at is a value of the rows in SQL.
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

// column is an array for unnest that gorm passes on whole.
type column []any

// Value is never called, as pgx prefers the other methods.
func (c column) Value() (driver.Value, error) { return nil, driver.ErrSkip }

// Dimensions is part of pgtype.ArrayGetter.
func (c column) Dimensions() []pgtype.ArrayDimension {
	return []pgtype.ArrayDimension{{Length: int32(len(c)), LowerBound: 1}} //nolint:gosec // a batch is bounded
}

// Index is part of pgtype.ArrayGetter.
func (c column) Index(i int) any { return c[i] }

// IndexType is part of pgtype.ArrayGetter: the values have their own types.
func (c column) IndexType() any { return nil }
