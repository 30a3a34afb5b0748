package db_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/pgproxy"
)

type calibration struct {
	Model   string
	Samples int
}

// addCalibration inserts a row.
func addCalibration(tx *gorm.DB, model string) error {
	return tx.Exec("INSERT INTO model_calibrations (model, factor, deviation, samples, updated_at) VALUES (?, 1, 0, 0, ?)", model, core.Now()).Error
}

// calibrations returns the names of the rows.
func calibrations(t *testing.T, d *db.DB) []string {
	t.Helper()
	names := []string{}
	if err := d.Gorm.WithContext(t.Context()).Raw("SELECT model FROM model_calibrations ORDER BY model").Scan(&names).Error; err != nil {
		t.Fatal(err)
	}
	return names
}

// Deferred writes take effect in order, before every later statement of the transaction, and all or
// none of them.
func TestDeferredWrites(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		g := d.Gorm.WithContext(t.Context())
		err := g.Transaction(func(tx *gorm.DB) error {
			if err := addCalibration(db.DeferWrites(tx), "a"); err != nil {
				return err
			}
			var n int64
			if err := tx.Table("model_calibrations").Count(&n).Error; err != nil || n != 1 {
				t.Errorf("got %d rows, %v after a deferred write, want one", n, err)
			}
			if err := addCalibration(db.DeferWrites(tx), "b"); err != nil {
				return err
			}
			changed := tx.Exec("UPDATE model_calibrations SET samples = samples + 1")
			if changed.RowsAffected != 2 {
				t.Errorf("got %d changed rows, want 2", changed.RowsAffected)
			}
			return errors.Join(changed.Error, addCalibration(db.DeferWrites(tx), "c"))
		})
		if got, want := calibrations(t, d), []string{"a", "b", "c"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		err = g.Transaction(func(tx *gorm.DB) error {
			return errors.Join(addCalibration(db.DeferWrites(tx), "d"), addCalibration(db.DeferWrites(tx), "a"))
		})
		if !errors.Is(err, gorm.ErrDuplicatedKey) {
			t.Errorf("got %v for a deferred write that is refused, want gorm.ErrDuplicatedKey", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = d.Gorm.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			defer cancel()
			return addCalibration(db.DeferWrites(tx), "e")
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v for a COMMIT after a cancel, want context.Canceled", err)
		}
		err = g.Transaction(func(tx *gorm.DB) error {
			if err := addCalibration(tx, "f"); err != nil {
				return err
			}
			return errors.New("no")
		})
		if got, want := calibrations(t, d), []string{"a", "b", "c"}; err == nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v after transactions that failed, want %v", got, err, want)
		}
	})
}

// After a statement has failed, a transaction is not committed, even if its error was ignored.
func TestCommitAfterAFailure(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	err := d.Gorm.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
		_ = tx.Exec("SELECT nothing").Error
		return nil
	})
	if err == nil {
		t.Error("got no error from the COMMIT")
	}
	if n := d.Pool().Stats().InUse; n != 0 {
		t.Errorf("got %d connections in use, want none", n)
	}
}

// Statements that were built by dry runs see one another, and fill their destinations.
func TestQueryBatch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Gorm.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
			if err := addCalibration(tx, "a"); err != nil {
				return err
			}
			var changed calibration
			var found []calibration
			var none calibration
			dry := tx.Session(&gorm.Session{DryRun: true})
			first := db.ScanInto(dry.Raw("UPDATE model_calibrations SET samples = 5 RETURNING model, samples").Find(&calibration{}), &changed)
			second := dry.Table("model_calibrations").Select("model, samples").Find(&found)
			third := dry.Table("model_calibrations").Select("model, samples").Where("model = 'b'").Take(&none)
			if err := db.QueryBatch(tx, first, second, third); err != nil {
				return err
			}
			want := calibration{"a", 5}
			if changed != want || first.RowsAffected != 1 || len(found) != 1 || found[0] != want || !errors.Is(third.Error, gorm.ErrRecordNotFound) {
				t.Errorf("got %+v, %+v and %v, want %+v twice and no third row", changed, found, third.Error, want)
			}
			bad := dry.Raw("SELECT nothing").Find(&none)
			if err := db.QueryBatch(tx, bad); err == nil {
				t.Error("got no error of a statement that fails")
			}
			return nil
		})
		if d.Dialect() == "postgres" && err == nil {
			t.Error("got no error from the COMMIT after a statement that failed")
		}
		if d.Dialect() == "sqlite" && err != nil {
			t.Errorf("got %v", err)
		}
	})
}

// A transaction waits twice for PostgreSQL if it reads once and its writes are deferred.
func TestRoundTripsOfATransaction(t *testing.T) {
	t.Parallel()
	proxy := pgproxy.New(t, dbtest.MigratedPostgresURL(t))
	d := dbtest.Open(t, proxy.URL)
	transact := func(model string) {
		t.Helper()
		err := d.Gorm.WithContext(t.Context()).Transaction(func(tx *gorm.DB) error {
			var all []calibration
			dry := tx.Session(&gorm.Session{DryRun: true})
			err := db.QueryBatch(tx, dry.Table("model_calibrations").Find(&all), dry.Table("model_calibrations").Where("samples > ?", 1).Find(&all))
			return errors.Join(err, addCalibration(db.DeferWrites(tx), model), addCalibration(db.DeferWrites(tx), model+"+"))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	transact("first") // prepares the statements
	before := proxy.RoundTrips()
	transact("second")
	if got := proxy.RoundTrips() - before; got != 2 {
		t.Errorf("got %d round trips, want 2", got)
	}
}
