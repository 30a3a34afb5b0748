package db

import (
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
)

// A write returns when it is on the disk, and not before. The next writer does not wait
// for that.
func TestCommitWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bobbin.db")
	if err := makeFile(path); err != nil {
		t.Fatal(err)
	}
	pool, err := sql.Open("sqlite", sqliteDSN(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if _, err := pool.ExecContext(t.Context(), "CREATE TABLE written (n)"); err != nil {
		t.Fatal(err)
	}
	begun, end := make(chan struct{}), make(chan error)
	g := newWriteQueue(pool, &logSync{turn: make(chan struct{}, 1), sync: func() error { begun <- struct{}{}; return <-end }})
	writes := []func() error{
		func() error {
			_, err := g.ExecContext(t.Context(), "INSERT INTO written VALUES (1)")
			return err
		},
		func() error {
			tx, err := g.BeginTx(t.Context(), nil)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO written VALUES (1)"); err != nil {
				return err
			}
			return tx.(*queuedTx).Commit()
		},
	}
	rows := 0
	for _, write := range writes {
		for _, fault := range []error{nil, errors.New("no disk")} {
			done := make(chan error, 1)
			go func() { done <- write() }()
			<-begun
			rows++
			var n int
			if err := pool.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM written").Scan(&n); err != nil || n != rows {
				t.Errorf("got %d rows, %v, want %d: it is committed", n, err, rows)
			}
			if len(g.turn) > 0 || len(done) > 0 {
				t.Error("the next writer waits, or this one does not")
			}
			end <- fault
			if err := <-done; errors.Is(err, core.ErrNoDatabase) != (fault != nil) || (err != nil) != (fault != nil) {
				t.Errorf("got %v for a sync that returned %v", err, fault)
			}
		}
	}
}

// Those who write while the log is brought to the disk share the next time.
func TestOneSyncForAllWhoWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		syncs, end := 0, make(chan struct{})
		s := &logSync{turn: make(chan struct{}, 1), sync: func() error { syncs++; <-end; return nil }}
		var wg sync.WaitGroup
		write := func() {
			wg.Go(func() {
				if err := s.wait(); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		write()
		for range 20 {
			write()
		}
		if syncs != 1 {
			t.Errorf("got %d syncs at once, want one", syncs)
		}
		end <- struct{}{}
		synctest.Wait()
		if syncs != 2 {
			t.Errorf("got %d syncs, want a second one for the others", syncs)
		}
		write() // after it began: it does not cover this one
		end <- struct{}{}
		synctest.Wait()
		end <- struct{}{}
		wg.Wait()
		if syncs != 3 {
			t.Errorf("got %d syncs for 22 writers, want 3", syncs)
		}
	})
}
