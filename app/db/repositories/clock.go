package repositories

import (
	"database/sql/driver"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// isPostgres reports whether the database is PostgreSQL rather than SQLite.
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
