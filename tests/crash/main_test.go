package crash_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/mcptest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/seed"
)

// den holds all files of the tests: the program that they start and its data.
var den *process.Den

func TestMain(m *testing.M) {
	mcptest.Main()
	var err error
	if den, err = process.Open("crash"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	den.Close()
	os.Exit(code)
}

// place is where a Bobbin keeps what it has.
type place struct {
	dataDir  string
	database string // URL
}

// eachPlace runs test with SQLite in the data folder, and with a PostgreSQL
// database.
func eachPlace(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		dir := den.Temp(t)
		test(t, place{dir, "sqlite://" + filepath.Join(dir, "bobbin.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, place{den.Temp(t), dbtest.PostgresURL(t)})
	})
}

// open opens the database; the caller closes it.
func (p place) open(t *testing.T) *db.DB {
	t.Helper()
	return must.Get(db.Open(t.Context(), p.database, slog.New(slog.DiscardHandler)))(t)
}

// environmentInt returns the number in a variable of the environment.
func environmentInt(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		t.Fatalf("%s is %q, want a number", name, text)
	}
	return n
}

// dice returns random choices of their own for one goroutine.
func dice(who int) *rand.Rand { return seed.Fixed(seed.Value(), uint64(who)) }

// shared is for goroutines that come and go. The seed does not decide who of them draws first.
var shared = seed.Fixed(seed.Value(), 1<<40)

// randomDelay returns a time shorter than the longest.
func randomDelay(longest time.Duration) time.Duration {
	return time.Duration(shared.Int64N(int64(longest)))
}
