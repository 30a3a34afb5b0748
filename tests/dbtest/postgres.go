package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/migrations"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// Variables of the environment, see the package comment.
const (
	serverVariable  = "BOBBIN_TEST_POSTGRES_URL"
	requireVariable = "BOBBIN_TEST_REQUIRE"
	longVariable    = "BOBBIN_TEST_LONG"
)

// errMissing: this machine has no PostgreSQL.
var errMissing = errors.New("PostgreSQL is not installed: on Debian and Ubuntu run \"apt-get install postgresql\" " +
	"(its programs are looked for in PATH and /usr/lib/postgresql/*/bin), or set " + serverVariable)

// server finds or starts the server once in this process.
//
//nolint:gochecknoglobals // one server for all tests of a process is the point
var server = sync.OnceValues(func() (*url.URL, error) {
	// A test's context would end before the other tests have used the server.
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	raw := os.Getenv(serverVariable)
	if raw == "" {
		var err error
		if raw, err = startCluster(ctx); err != nil {
			return nil, err
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", serverVariable, err)
	}
	return u, makeTemplate(ctx, u)
})

// createDatabase creates a database for the test and returns its URL.
func createDatabase(t testing.TB, migrated bool) string {
	t.Helper()
	u, err := server()
	if errors.Is(err, errMissing) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skip(err)
	}
	must.Do(t, err)
	template := "template0"
	if migrated {
		template = templateName()
	}
	name := "bobbin_test_" + strings.ReplaceAll(core.NewID[string](), "-", "")
	must.Do(t, copyDatabase(t.Context(), u, name, template))
	t.Cleanup(func() {
		// t.Context is over here.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		compare.Error(t, "drop the test's database", nil, executeSQL(ctx, u, fmt.Sprintf("DROP DATABASE IF EXISTS %s WITH (FORCE)", name)))
	})
	return withDatabase(u, name)
}

// makeTemplate creates the migrated database that tests copy, unless another process has.
// Its name depends on the migrations.
func makeTemplate(ctx context.Context, u *url.URL) error {
	conn, err := pgx.Connect(ctx, withDatabase(u, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // releases the lock, too
	name := templateName()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return err
	}
	var done bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate)", name).Scan(&done)
	if err != nil || done {
		return err
	}
	for _, stmt := range []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name + " TEMPLATE template0"} {
		if _, err := conn.Exec(ctx, stmt); err != nil {
			return err
		}
	}
	if err := migrateURL(ctx, withDatabase(u, name)); err != nil {
		return fmt.Errorf("create the template: %w", err)
	}
	// The mark is set last: a template without it is incomplete and is created again.
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true")
	return err
}

func migrateURL(ctx context.Context, url string) error {
	d, err := db.Open(ctx, url, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(d.Migrate(ctx), d.Close())
}

// templateName names the template after a hash of the migrations.
func templateName() string {
	sum := sha256.New()
	files := migrations.Postgres()
	err := fs.WalkDir(files, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		panic("dbtest: " + err.Error()) // the files are embedded
	}
	return "bobbin_template_" + hex.EncodeToString(sum.Sum(nil))[:16]
}

// copyDatabase creates a database as a copy of the template. PostgreSQL from 15 on copies
// block by block through its log unless told otherwise, which takes three times as long.
func copyDatabase(ctx context.Context, u *url.URL, name, template string) error {
	conn, err := pgx.Connect(ctx, withDatabase(u, "postgres"))
	if err != nil {
		return err
	}
	stmt := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)
	major, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), ".")
	if n, err := strconv.Atoi(major); err == nil && n >= 15 {
		stmt += " STRATEGY FILE_COPY"
	}
	_, err = conn.Exec(ctx, stmt)
	return errors.Join(err, conn.Close(ctx))
}

// executeSQL runs one statement outside of a transaction, on its own connection.
func executeSQL(ctx context.Context, u *url.URL, stmt string) error {
	conn, err := pgx.Connect(ctx, withDatabase(u, "postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, stmt)
	return errors.Join(err, conn.Close(ctx))
}

// withDatabase returns the server's URL with the name of a database.
func withDatabase(u *url.URL, name string) string {
	c := *u
	c.Path = "/" + name
	return c.String()
}

// Server is a PostgreSQL of one test that can be stopped and started again: it listens at
// the same address each time and keeps committed data. Not safe for concurrent use.
type Server struct {
	URL string // of an empty database

	cluster cluster
	owner   process
	port    string
	now     *runningServer // nil = stopped
}

// StopMode is how a Server is stopped.
type StopMode string

// The modes are PostgreSQL's own.
const (
	StopFast      StopMode = "fast"      // disconnects clients and rolls back transactions
	StopImmediate StopMode = "immediate" // like a crash: the next start recovers
)

// stopTime bounds how long a server may take to stop.
const stopTime = time.Minute

// NewServer starts a PostgreSQL for this test only, and stops and removes it afterwards.
// Without PostgreSQL the test is skipped, or fails if BOBBIN_TEST_REQUIRE says so.
func NewServer(t testing.TB) *Server {
	t.Helper()
	bin, err := findPrograms()
	if errors.Is(err, errMissing) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skip(err)
	}
	must.Do(t, err)
	asUser := must.Get(serverUser())(t)
	dir, err := os.MkdirTemp("", "bobbin-own-postgres-") //nolint:usetesting // the server's user must reach it
	must.Do(t, err)
	s := &Server{cluster: cluster{dir: dir, bin: bin, asUser: asUser, safe: true}, owner: thisProcess()}
	t.Cleanup(func() {
		compare.Error(t, "remove the test's PostgreSQL", nil, errors.Join(s.Stop(StopImmediate), os.RemoveAll(dir)))
	})
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	r := must.Get(s.cluster.startNew(ctx, s.owner))(t)
	s.now = &r
	u := must.Get(url.Parse(r.url))(t)
	s.port, s.URL = u.Port(), r.url
	return s
}

// Stop stops the server. It does nothing if the server is stopped.
func (s *Server) Stop(mode StopMode) error {
	if s.now == nil {
		return nil
	}
	if err := signalServer(s.now.pid, mode); err != nil {
		return fmt.Errorf("stop postgres: %w", err)
	}
	limit := time.NewTimer(stopTime)
	defer limit.Stop()
	select {
	case <-s.now.exited: //nolint:errcheck // an immediate stop exits with an error
		s.now = nil
		return nil
	case <-limit.C:
		return fmt.Errorf("postgres has not stopped (%s) after %s", mode, stopTime)
	}
}

// Start starts a stopped server, and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	if s.now != nil {
		return nil
	}
	r, err := s.cluster.startServer(ctx, s.owner, s.port)
	if err != nil {
		return err
	}
	s.now = &r
	return nil
}

// Each runs test on SQLite and on PostgreSQL, as parallel subtests with a migrated, empty
// database each. Without PostgreSQL that half is skipped.
func Each(t *testing.T, test func(t *testing.T, d *db.DB)) {
	t.Helper()
	EachMigratedURL(t, func(t *testing.T, url string) { test(t, Open(t, url)) })
}

// EachURL is Each for tests that start processes or open databases themselves: it passes
// the URL of an empty database without tables.
func EachURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", SQLiteURL, test)
	run(t, "postgres", PostgresURL, test)
}

// EachMigratedURL is EachURL with all tables and no rows: programs need not migrate it,
// which would take longer than most of their tests.
func EachMigratedURL(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", MigratedSQLiteURL, test)
	run(t, "postgres", MigratedPostgresURL, test)
}

// EachMigratedURLNightly is EachMigratedURL with PostgreSQL only under BOBBIN_TEST_LONG (make
// nightly): for scenarios whose queries app/db/repositories tests on both.
func EachMigratedURLNightly(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	run(t, "sqlite", MigratedSQLiteURL, test)
	if os.Getenv(longVariable) != "" {
		run(t, "postgres", MigratedPostgresURL, test)
	}
}

// run runs test with the URL of a new database, beside others.
func run(t *testing.T, name string, create func(testing.TB) string, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		test(t, create(t))
	})
}

// SQLite returns a migrated, empty SQLite database, closed after the test.
func SQLite(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, MigratedSQLiteURL(t))
}

// MigratedSQLiteURL returns the URL of a SQLite file with all tables and no rows.
func MigratedSQLiteURL(t testing.TB) string {
	t.Helper()
	content := must.Get(migratedFile())(t)
	url := SQLiteURL(t)
	must.Do(t, os.WriteFile(strings.TrimPrefix(url, "sqlite://"), content, 0o600))
	return url
}

// migratedFile is the content of a migrated SQLite file, created once per process.
//
//nolint:gochecknoglobals // one template for all tests of a process is the point
var migratedFile = sync.OnceValues(func() (content []byte, err error) {
	folder, err := os.MkdirTemp("", "bobbin-dbtest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	path := filepath.Join(folder, "bobbin.db")
	// A test's context would end before the other tests have used the file.
	if err := migrateURL(context.Background(), "sqlite://"+path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the file is incomplete: %s-wal: %w", path, err)
	}
	return os.ReadFile(path)
})

// SQLiteURL returns the URL of a SQLite file that does not exist yet.
func SQLiteURL(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "bobbin.db")
}

// Postgres returns a migrated, empty PostgreSQL database, dropped after the test.
// Without PostgreSQL the test is skipped, or fails if BOBBIN_TEST_REQUIRE says so.
func Postgres(t testing.TB) *db.DB {
	t.Helper()
	return Open(t, createDatabase(t, true))
}

// PostgresURL returns the URL of a PostgreSQL database without any tables, dropped
// after the test.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, false)
}

// MigratedPostgresURL returns the URL of a PostgreSQL database with all tables and no
// rows, dropped after the test.
func MigratedPostgresURL(t testing.TB) string {
	t.Helper()
	return createDatabase(t, true)
}

// Open opens the database and closes it after the test. It does not migrate.
func Open(t testing.TB, url string) *db.DB {
	t.Helper()
	d := must.Get(db.Open(t.Context(), url, slog.New(slog.DiscardHandler), db.WithoutSync))(t) // tests need not survive a power failure
	t.Cleanup(func() {
		compare.Error(t, "close the test's database", nil, d.Close())
	})
	return d
}
