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
	target string   // the table, or an UPDATE with % for each value
	table  *table   // nil for an UPDATE
	kinds  []string // types of the values on PostgreSQL
	rows   [][]any
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
	if s.Table == (models.UsageDay{}).TableName() {
		t.conflict = " ON CONFLICT (" + strings.Join(s.DBNames[:usageKeys], ", ") + ") DO UPDATE SET " + strings.Join(add[usageKeys:], ", ")
	}
	return t
}

// insertOf returns the INSERT of the rows, a pointer to a row or a slice.
func insertOf(g *gorm.DB, rows any) (statement, error) {
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
		values := make([]any, len(s.table.fields))
		for k, f := range s.table.fields {
			values[k], _ = f.ValueOf(g.Statement.Context, v.Index(i))
		}
		if err := convert(values); err != nil {
			return s, err
		}
		s.rows[i] = values
	}
	return s, nil
}

// Insert inserts the rows.
func Insert(g *gorm.DB, rows any) error {
	s, err := insertOf(g, rows)
	if err == nil {
		_, err = s.execute(g)
	}
	return err
}

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
	if s.table == nil {
		res := tx.Exec(strings.ReplaceAll(s.target, "%", "?"), s.rows[0]...)
		return res.RowsAffected, res.Error
	}
	row := ", (" + strings.Repeat("?, ", len(s.kinds)-1) + "?)"
	for part := range slices.Chunk(s.rows, maxRows) {
		res := tx.Exec(s.table.insert+"VALUES "+strings.Repeat(row, len(part))[2:]+s.table.conflict, slices.Concat(part...)...)
		if res.Error != nil {
			return n, res.Error
		}
		n += res.RowsAffected
	}
	return n, nil
}
