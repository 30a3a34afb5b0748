package dbtest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

func TestEachGivesAnEmptyMigratedDatabase(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		v, err := d.MigrationStatus(t.Context())
		if err != nil || v.Pending() || v.Current == 0 {
			t.Errorf("status: got %+v, %v, want the newest version", v, err)
		}
		// Two databases of one test know nothing of each other.
		other := map[string]func(testing.TB) *db.DB{"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres}[d.Dialect()](t)
		insert := "INSERT INTO model_calibrations (model, factor, deviation, samples, updated_at) VALUES ('m', 1, 0, 0, ?)"
		if err := d.Gorm.WithContext(t.Context()).Exec(insert, d.Gorm.NowFunc()).Error; err != nil {
			t.Fatal(err)
		}
		var n int
		err = other.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM model_calibrations").Scan(&n).Error
		if err != nil || n != 0 {
			t.Errorf("rows in the other database: got %d, %v, want none", n, err)
		}
	})
}

func TestEachURLGivesAnEmptyDatabase(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		if !strings.HasPrefix(url, "sqlite://") && !strings.HasPrefix(url, "postgres://") {
			t.Errorf("URL: got %s", url)
		}
		v, err := dbtest.Open(t, url).MigrationStatus(t.Context())
		if err != nil || v.Current != 0 {
			t.Errorf("status: got %+v, %v, want version 0", v, err)
		}
	})
}

func TestEachMigratedURLHasNothingToMigrate(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		v, err := d.MigrationStatus(t.Context())
		if err != nil || v.Pending() || v.Current == 0 {
			t.Errorf("status: got %+v, %v, want the newest version", v, err)
		}
	})
}

const childVariable = "BOBBIN_DBTEST_CHILD"

// A binary that "go test" did not start has a cluster of its own, which ends with
// it, even when it is killed.
func TestClusterEndsWithItsOwner(t *testing.T) {
	t.Parallel()
	if os.Getenv(childVariable) != "" {
		fmt.Println("url:", dbtest.PostgresURL(t))
		<-t.Context().Done() // killed before
		return
	}
	if os.Getenv("BOBBIN_TEST_POSTGRES_URL") != "" {
		t.Skip("a server of its own is used")
	}
	dbtest.PostgresURL(t) // skips where PostgreSQL is missing
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestClusterEndsWithItsOwner$", "-test.v")
	// Its own temporary folder, in which an earlier run left something behind.
	tmp := t.TempDir()
	if err := errors.Join(os.Chmod(tmp, 0o755), os.Chmod(filepath.Dir(tmp), 0o755)); err != nil { // for the user postgres
		t.Fatal(err)
	}
	stale := filepath.Join(tmp, fmt.Sprintf("bobbin-postgres-%d-1-0", os.Getuid())) // process 1 did not start at 0
	if err := errors.Join(os.Mkdir(stale, 0o700), os.WriteFile(filepath.Join(stale, "pid"), []byte("1"), 0o600)); err != nil {
		t.Fatal(err)
	}
	child.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+tmp)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	url := ""
	for lines := bufio.NewScanner(out); url == "" && lines.Scan(); {
		url, _ = strings.CutPrefix(lines.Text(), "url: ")
		if url == lines.Text() {
			url = ""
		}
	}
	if err := pingServer(t.Context(), url); err != nil {
		t.Fatalf("the child's server at %q: %v", url, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // "killed"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for pingServer(ctx, url) == nil || len(folders(t, tmp)) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("a minute after the owner was killed %q answers, or is there: %q", url, folders(t, tmp))
		}
	}
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "bobbin-postgres-*-*-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func pingServer(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// TestServer: what was committed is there after any stop, at the same address.
func TestServer(t *testing.T) {
	t.Parallel()
	s := dbtest.NewServer(t)
	for n, mode := range []dbtest.StopMode{dbtest.StopImmediate, dbtest.StopFast} {
		conn, err := pgx.Connect(t.Context(), s.URL)
		if err == nil {
			_, err = conn.Exec(t.Context(), fmt.Sprintf("CREATE TABLE t%d ()", n))
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(mode); err != nil {
			t.Fatal(err)
		}
		if _, err := pgx.Connect(t.Context(), s.URL); err == nil {
			t.Errorf("%s: a stopped server answers", mode)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if conn, err = pgx.Connect(t.Context(), s.URL); err == nil {
			_, err = conn.Exec(t.Context(), fmt.Sprintf("DROP TABLE t%d", n))
		}
		if err != nil {
			t.Errorf("%s: the table is lost: %v", mode, err)
		}
	}
}
