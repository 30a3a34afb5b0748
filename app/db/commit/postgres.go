package commit

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"
)

// writePostgres writes the changes in one statement, except those of sessions and runs that are locked
// or that have changed: so it waits for no transaction that may wait for it. An error of one undoes all.
func writePostgres(g *gorm.DB, all []*Change) error {
	sql, args := buildPostgres(all)
	var written []string
	if err := g.Raw(sql, args...).Scan(&written).Error; err != nil {
		return err
	}
	for _, ch := range all {
		ch.written = slices.Contains(written, ch.session.ID)
	}
	return nil
}

// buildPostgres returns the statement. Its text depends only on which statements it joins: the rows are
// arrays.
func buildPostgres(changes []*Change) (string, []any) {
	var args []any
	all := join(changes)
	rows, writes := make([]string, len(all)), make([]string, len(all))
	mine, notMine := "", ""
	for i, j := range all {
		j.name = fmt.Sprintf("u%d", i)
		rows[i] = j.name + " AS (SELECT * FROM " + j.unnest(&args) + ")"
		writes[i] = fmt.Sprintf("w%d AS (%s)", i, j.sql())
		if j.update == runUpdate {
			_, where := j.setWhere()
			mine = "mine AS (SELECT runs.id FROM " + j.name + " JOIN runs ON " + where + " FOR NO KEY UPDATE OF runs SKIP LOCKED),\n"
			notMine = " WHERE NOT EXISTS (SELECT 1 FROM " + j.name + " WHERE " + j.at(0) + " = sessions.id AND NOT EXISTS (SELECT 1 FROM mine WHERE mine.id = " + j.at(len(j.kinds)-3) + "))"
		}
	}
	_, where := all[0].setWhere()
	ok := "ok AS (SELECT sessions.id FROM u0 JOIN sessions ON " + where + notMine + " FOR NO KEY UPDATE OF sessions SKIP LOCKED)"
	return "WITH " + strings.Join(rows, ",\n") + ",\n" + mine + ok + ",\n" + strings.Join(writes, ",\n") + "\nSELECT id FROM ok", args
}

// joined is a statement for the rows of all changes; their first value is the id of the session.
type joined struct {
	statement

	name string // of its rows
}

// join returns the statements of the changes, each once.
func join(changes []*Change) []*joined {
	type key struct {
		table  *table
		update string
	}
	var all []*joined
	of := map[key]*joined{}
	for _, ch := range changes {
		for _, s := range ch.all {
			k := key{s.table, s.update}
			if of[k] == nil {
				of[k] = &joined{statement: statement{table: s.table, update: s.update, kinds: append([]string{"uuid"}, s.kinds...)}}
				all = append(all, of[k])
			}
			for _, row := range s.rows {
				of[k].rows = append(of[k].rows, append([]any{ch.session.ID}, row...))
			}
		}
	}
	return all
}

// at is a value of the rows in SQL.
func (j *joined) at(i int) string { return fmt.Sprintf("%s.v%d::%s", j.name, i, j.kinds[i]) }

// unnest returns the rows as a table, an array for each column, and adds the arrays to args.
func (j *joined) unnest(args *[]any) string {
	arrays, names := make([]string, len(j.kinds)), make([]string, len(j.kinds))
	for i, kind := range j.kinds {
		if kind == "uuid" || kind == "json" || kind == "jsonb" {
			kind = "text"
		}
		list := make(column, len(j.rows))
		for k, row := range j.rows {
			list[k] = row[i]
		}
		arrays[i], names[i], *args = "?::"+kind+"[]", fmt.Sprintf("v%d", i), append(*args, list)
	}
	return "unnest(" + strings.Join(arrays, ", ") + ") AS u (" + strings.Join(names, ", ") + ")"
}

// setWhere returns the two parts of an UPDATE.
func (j *joined) setWhere() (set, where string) {
	sql := j.update
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
	conflict := j.table.conflictSQL()
	for i := range j.table.fields {
		v := j.at(i + 1)
		switch {
		case conflict != "" && i >= usageKeys:
			v = "sum(" + v + ")"
		case conflict != "" && j.kinds[i+1] == "text":
			keys, order = append(keys, v), append(order, v+` COLLATE "C"`)
		case conflict != "":
			keys, order = append(keys, v), append(order, v)
		}
		values = append(values, v)
	}
	if conflict != "" {
		conflict = " GROUP BY " + strings.Join(keys, ", ") + " ORDER BY " + strings.Join(order, ", ") + conflict
	}
	return `INSERT INTO "` + j.table.name + `" (` + j.table.columns + ") SELECT " + strings.Join(values, ", ") + from + conflict
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
