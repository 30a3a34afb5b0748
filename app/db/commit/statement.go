package commit

import (
	"database/sql/driver"
	"reflect"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"bobbin/app/db/models"
)

// statement inserts rows into a table, or updates some for each row of values. Its SQL is constant:
// building one costs more than executing it.
type statement struct {
	table  *table
	update string   // with % for each value; without a table
	kinds  []string // types of the values on PostgreSQL
	rows   [][]any
}

// table is a model's.
type table struct {
	name    string
	fields  []*schema.Field
	columns string // their names
	kinds   []string
}

// conflictSQL ends the INSERT of the table; empty = the rows are new. Usage is added to what there is.
func (t *table) conflictSQL() string {
	if t.name != (models.UsageDay{}).TableName() {
		return ""
	}
	add := " ON CONFLICT (owner, level, user_id, session_id, day, agent, model, shard) DO UPDATE SET "
	for _, f := range t.fields[usageKeys:] {
		add += f.DBName + " = usage_days." + f.DBName + " + excluded." + f.DBName + ", "
	}
	return add[:len(add)-2]
}

// usageKeys is how many of the first columns of usage_days are its key.
const usageKeys = 8

// insertOf returns the INSERT of the rows, a pointer to a row or a slice. ErrInvalid for text that cannot be
// stored.
func insertOf(g *gorm.DB, rows any) (statement, error) {
	v := reflect.Indirect(reflect.ValueOf(rows))
	if v.Kind() == reflect.Struct {
		v = reflect.Append(reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, 1), v)
	}
	stmt := &gorm.Statement{DB: g}
	if err := stmt.Parse(rows); err != nil {
		return statement{}, err
	}
	known, _ := Of(g).tables.LoadOrStore(stmt.Schema, newTable(stmt.Schema))
	t := known.(*table)
	s := statement{table: t, kinds: t.kinds, rows: make([][]any, v.Len())}
	for i := range s.rows {
		values := make([]any, len(t.fields))
		for k, f := range t.fields {
			values[k], _ = f.ValueOf(g.Statement.Context, v.Index(i))
		}
		var err error
		if s.rows[i], err = storables(values); err != nil {
			return s, err
		}
	}
	return s, nil
}

func newTable(s *schema.Schema) *table {
	t := &table{name: s.Table, columns: strings.Join(s.DBNames, ", ")}
	for _, name := range s.DBNames {
		f := s.FieldsByDBName[name]
		kind := string(f.DataType) // of the model
		switch f.DataType {
		case schema.String:
			kind = "text"
		case schema.Int, schema.Uint:
			kind = "bigint"
		case schema.Bool:
			kind = "boolean"
		case schema.Time:
			kind = "timestamptz"
		}
		t.fields, t.kinds = append(t.fields, f), append(t.kinds, kind)
	}
	return t
}

// Check returns ErrInvalid if a text of the rows cannot be stored.
func Check(g *gorm.DB, rows any) error {
	_, err := insertOf(g, rows)
	return err
}

// Insert inserts the rows.
func Insert(g *gorm.DB, rows any) error {
	s, err := insertOf(g, rows)
	if err == nil {
		_, err = s.execute(g)
	}
	return err
}

// storables returns the values as drivers take them, ErrInvalid for text that one of the databases does not
// store.
func storables(values []any) ([]any, error) {
	for i, v := range values {
		var err error
		if j, ok := v.(models.JSON); ok {
			err = models.CheckJSON(j)
		}
		if valuer, ok := v.(driver.Valuer); ok && err == nil {
			v, err = valuer.Value()
		}
		switch r := reflect.ValueOf(v); {
		case r.Kind() == reflect.Pointer && r.IsNil():
			v = nil
		case r.Kind() == reflect.Pointer:
			v = r.Elem().Interface()
		}
		if text, ok := v.(string); ok && err == nil {
			err = models.CheckText(text)
		}
		if values[i] = v; err != nil {
			return nil, err
		}
	}
	return values, nil
}

// maxRows bounds the rows of an INSERT.
const maxRows = 64

// execute executes the statement, and returns how many rows it has written.
func (s statement) execute(tx *gorm.DB) (n int64, err error) {
	if s.table == nil {
		res := tx.Exec(strings.ReplaceAll(s.update, "%", "?"), s.rows[0]...)
		return res.RowsAffected, res.Error
	}
	row := "(" + strings.Repeat("?, ", len(s.table.fields)-1) + "?)"
	for part := range slices.Chunk(s.rows, maxRows) {
		sql := `INSERT INTO "` + s.table.name + `" (` + s.table.columns + ") VALUES " + strings.Repeat(row+", ", len(part)-1) + row + s.table.conflictSQL()
		res := tx.Exec(sql, slices.Concat(part...)...)
		if res.Error != nil {
			return n, res.Error
		}
		n += res.RowsAffected
	}
	return n, nil
}
