package repositories

import (
	"database/sql/driver"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Lease is how long a claim of a run lasts without being renewed.
const Lease = 30 * time.Second

// isPostgres tells which of the two databases it is.
func isPostgres(db *gorm.DB) bool { return db.Name() == "postgres" }

// clockSQL is the expression of the database's time, plus some whole seconds;
// a negative number takes them off. On SQLite it has the form in which times are
// stored, so that text compares as time does.
func clockSQL(db *gorm.DB, plus time.Duration) string {
	seconds := int(plus / time.Second)
	if isPostgres(db) {
		return fmt.Sprintf("(clock_timestamp() + interval '%d seconds')", seconds)
	}
	return fmt.Sprintf("strftime('%%Y-%%m-%%d %%H:%%M:%%f+00:00', 'now', '%+d seconds')", seconds)
}

// clockTime is the result of clockSQL as a time.
type clockTime struct{ time.Time }

// Scan takes a time, or SQLite's text of one.
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

// Value makes gorm take it for a column.
func (c clockTime) Value() (driver.Value, error) { return c.Time, nil }
