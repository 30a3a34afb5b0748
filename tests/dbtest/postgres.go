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
