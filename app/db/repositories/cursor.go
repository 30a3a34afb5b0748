package repositories

import (
	"cmp"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// position is the end of a page. Cursors are opaque to clients.
type position struct {
	List string `json:"l"`           // the name of the list
	N    int64  `json:"n"`           // a number, or microseconds since 1970
	ID   string `json:"i,omitempty"` // if N alone is not unique
	M    int64  `json:"m,omitempty"` // likewise, a number
	Key  string `json:"k,omitempty"` // a name, in lists ordered by name; the last item, in ranked lists
}

func (p position) encodeCursor() *string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("repositories: " + err.Error()) // strings and a number
	}
	s := base64.RawURLEncoding.EncodeToString(raw)
	return &s
}

// isSet reports whether the position is in a list; that of the first page is not.
func (p position) isSet() bool { return p.List != "" }

// pageStart checks the limit and the cursor of a page. It returns the limit and the
// position after which the page begins.
func pageStart(limit int, cursor string, lists ...string) (int, position, error) {
	switch {
	case limit == 0:
		limit = core.DefaultPageLimit
	case limit < 0 || limit > core.MaxPageLimit:
		return 0, position{}, &core.Error{Kind: core.ErrInvalid,
			Message: "limit must be between 1 and 200",
			Fields:  []core.FieldError{{Field: "limit", Detail: "must be between 1 and 200"}}}
	}
	after, err := parseCursor(cursor, lists...)
	return limit, after, err
}

// keyset is the order of a list, from the last row to the first one unless it is ascending: by the id, by a number,
// or by the time of creation and the id, which is never ascending.
type keyset[R any] struct {
	list, column string
	find         func(rows *gorm.DB) ([]R, error) // nil = findRows
	ascending    bool
}

func (k keyset[R]) seek(rows *gorm.DB, after position) *gorm.DB {
	order, where, args := k.column+" DESC", k.column+" < ?", []any{after.N}
	if k.ascending {
		order, where = k.column, k.column+" > ?"
	}
	switch k.column {
	case "id":
		args = []any{after.ID}
	case "created_at":
		order, where, args = "created_at DESC, id DESC", "(created_at, id) < (?, ?)", []any{time.UnixMicro(after.N).UTC(), after.ID}
	}
	if after.isSet() {
		rows = rows.Where(where, args...)
	}
	return rows.Order(order)
}

// findPage returns a page of the rows, with at most the bytes of the query in the columns that may be long.
func findPage[R any](rows *gorm.DB, k keyset[R], q core.PageQuery, long longColumns, at func(R) position) (none core.Page[R], err error) {
	limit, after, err := pageStart(q.Limit, q.Cursor, k.list)
	if err != nil {
		return none, err
	}
	rows = k.seek(rows, after).Session(&gorm.Session{})
	if len(long.texts) > 0 {
		limit, err = fitRows(rows, long, limit, cmp.Or(q.Bytes, core.MaxPageBytes))
	}
	var list []R
	if err == nil {
		if k.find == nil {
			k.find = findRows[R]
		}
		list, err = k.find(rows.Limit(limit + 1))
	}
	if err != nil {
		return none, wrapError(err, k.list, "")
	}
	return pageOf(list, limit, func(row R) position {
		p := at(row)
		p.List = k.list
		return p
	}), nil
}

// createdAt is the position of a row in a list by the time of creation.
func createdAt[T ~string](at time.Time, id T) position {
	return position{N: at.UnixMicro(), ID: string(id)}
}

// parseCursor returns the position of a cursor of one of the lists; unset for the first page.
func parseCursor(cursor string, lists ...string) (position, error) {
	if cursor == "" {
		return position{}, nil
	}
	var p position
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	for _, l := range lists {
		if err == nil && p.List == l && (p.ID == "" || core.ValidID(p.ID)) {
			return p, nil
		}
	}
	return position{}, &core.Error{Kind: core.ErrInvalid, Err: err,
		Message: "the cursor does not belong to this list; omit it to get the first page",
		Fields:  []core.FieldError{{Field: "cursor", Detail: "not a cursor of this list"}}}
}

// indexAfter returns where in a ranked list the page after the position begins: after the
// position's last item, whatever is ranked before it meanwhile, or at N if that item is gone.
func indexAfter[T any](p position, list []T, key func(T) string) int {
	if i := slices.IndexFunc(list, func(item T) bool { return key(item) == p.Key }); i >= 0 {
		return i + 1
	}
	return int(min(max(0, p.N), int64(len(list))))
}

// pageOf returns a page of rows, which were queried with a limit of one more.
func pageOf[T any](rows []T, limit int, at func(T) position) core.Page[T] {
	var next *string
	if len(rows) > limit {
		rows = rows[:limit]
		next = at(rows[limit-1]).encodeCursor()
	}
	return core.Page[T]{Items: append([]T{}, rows...), NextCursor: next}
}

// mapRows converts rows to core values; the result is never nil.
func mapRows[R, T any](rows []R, value func(R) T) []T {
	out := make([]T, 0, len(rows))
	for _, r := range rows {
		out = append(out, value(r))
	}
	return out
}

func findAll[R, T any](db *gorm.DB, value func(R) T) ([]T, error) {
	rows, err := findRows[R](db)
	return mapRows(rows, value), err
}

func findRows[R any](db *gorm.DB) (rows []R, err error) {
	err = db.Find(&rows).Error
	return rows, err
}

// takeRow returns the row of a query on the named thing, ErrNotFound if there is none.
func takeRow[R any, T ~string](db *gorm.DB, what string, id T) (row R, err error) {
	err = db.Take(&row).Error
	return row, wrapError(err, what, id)
}

// scan returns what a query selects: a value, or a list.
func scan[V any](db *gorm.DB) (value V, err error) {
	err = db.Scan(&value).Error
	return value, err
}

func count(db *gorm.DB) (n int64, err error) {
	err = db.Count(&n).Error
	return n, err
}

// findFirst returns the first row of a query; nil if there is none.
func findFirst[R any](db *gorm.DB) (*R, error) {
	rows, err := findRows[R](db.Limit(1))
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// findIn returns the rows that match db and have one of the values in the column.
func findIn[R, V any](db *gorm.DB, column string, list []V) ([]R, error) {
	db = db.Session(&gorm.Session{})
	all := []R{}
	for part := range slices.Chunk(list, maxIDs) {
		var rows []R
		if err := db.Where(column+" IN ?", part).Find(&rows).Error; err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func isPostgres(db *gorm.DB) bool { return db.Name() == "postgres" }

// clockSQL is the expression for the database's time plus some whole seconds, which may be
// negative. On SQLite it has the format of stored times, so that they compare as text.
func clockSQL(db *gorm.DB, plus time.Duration) string {
	seconds := int(plus / time.Second)
	if isPostgres(db) {
		return fmt.Sprintf("(clock_timestamp() + interval '%d seconds')", seconds)
	}
	return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f+00:00', 'now', '%+d seconds')", seconds)
}

// clockBoundSQL is clockSQL for comparisons with an indexed column. Otherwise PostgreSQL
// reads the clock for each row and scans the whole table.
func clockBoundSQL(db *gorm.DB, plus time.Duration) string {
	if isPostgres(db) {
		return "(SELECT " + clockSQL(db, plus) + ")"
	}
	return clockSQL(db, plus)
}

// clockTime is the value of a clockSQL expression.
type clockTime struct{ time.Time }

// Scan accepts a time, or its text on SQLite.
func (c *clockTime) Scan(v any) error {
	switch v := v.(type) {
	case time.Time:
		c.Time = v.UTC()
		return nil
	case string:
		t, err := time.Parse("2006-01-02 15:04:05.999999999-07:00", v)
		c.Time = t.UTC()
		return err
	}
	return fmt.Errorf("a %T is not a time", v)
}

// Value lets gorm treat the type as a column.
func (c clockTime) Value() (driver.Value, error) { return c.Time, nil }

// backlog is how much waits, and since when.
type backlog struct {
	N      int
	Oldest *clockTime // nil = nothing waits
	Now    clockTime
}

// age is how long the oldest has been waiting.
func (b backlog) age() time.Duration {
	if b.Oldest == nil {
		return 0
	}
	return max(b.Now.Sub(b.Oldest.Time), 0)
}
