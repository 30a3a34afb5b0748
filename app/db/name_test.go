package db_test

import (
	"errors"
	"testing"

	"bobbin/app/db"
	"bobbin/app/db/dbtest"
)

// Of several processes one has a name; another is told who has it, and gets it when the
// first has left. Names of other replicas, and on SQLite all, are free.
func TestHoldName(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		first, err := d.HoldName(t.Context(), "a", "one")
		if err != nil {
			t.Fatal(err)
		}
		other, err := d.HoldName(t.Context(), "b", "two")
		if err != nil || other.Check(t.Context()) != nil {
			t.Errorf("another name: %v", err)
		}
		second, err := d.HoldName(t.Context(), "a", "three")
		var taken *db.NameTakenError
		if d.Dialect() == "postgres" && (!errors.As(err, &taken) || taken.Holder.Who != "one" || taken.Holder.Since.IsZero() || second != nil) {
			t.Errorf("the same name: got %v, want that one has it", err)
		}
		if d.Dialect() == "sqlite" && err != nil {
			t.Errorf("SQLite: %v", err)
		}
		if err := errors.Join(first.Check(t.Context()), first.Close(), second.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		if d.Dialect() == "postgres" && first.Check(t.Context()) == nil {
			t.Error("a name that was given back is held")
		}
		for { // the database lets go a moment after the connection is closed
			third, err := d.HoldName(t.Context(), "a", "four")
			if err == nil {
				if err := third.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.As(err, &taken) {
				t.Fatal(err)
			}
		}
	})
}

// What a process that was killed held is free.
func TestNameOfADeadProcess(t *testing.T) {
	t.Parallel()
	d := dbtest.Postgres(t)
	if _, err := d.HoldName(t.Context(), "a", "one"); err != nil {
		t.Fatal(err)
	}
	if err := d.Gorm.Exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bobbin one'").Error; err != nil {
		t.Fatal(err)
	}
	var taken *db.NameTakenError
	for {
		n, err := d.HoldName(t.Context(), "a", "two")
		if err == nil {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.As(err, &taken) {
			t.Fatal(err)
		}
	}
}
