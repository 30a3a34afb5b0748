// Package crash_test kills a running Bobbin, a process of its own, with SIGKILL
// and looks whether everything that was promised is there after the restart: each
// accepted message in the log once and answered once, the old or the new summary
// whole, numbers without gaps, and no session that stands still.
//
// The Bobbin is the real program, built once; its model is a provider inside the
// test, its clients use the HTTP API. `make show-crash` runs everything in full
// and prints the figures. Two variables of the environment change it:
//
//	BOBBIN_CRASH_KILLS  how often each database's Bobbin is killed at random
//	BOBBIN_CRASH_SEED   repeats the random choices of a run (not its timing)
package crash_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"bobbin/app/db"
	"bobbin/app/db/dbtest"
)

// workDir holds all files of the tests: the program that they start, its data, and
// the ids of its processes as names of files.
var workDir string

func TestMain(m *testing.M) {
	var err error
	if workDir, err = os.MkdirTemp("", "bobbin-crash-"); err == nil {
		err = os.Mkdir(pidDir(), 0o700)
	}
	if err == nil {
		err = watch()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(workDir)
	os.Exit(code)
}

func pidDir() string { return filepath.Join(workDir, "pids") }

// watchScript waits until the tests ($1) have ended, however they do, kills what
// they have left running and removes their folder ($2).
const watchScript = `
trap '' INT TERM HUP
while kill -0 "$1" 2>/dev/null; do sleep 0.5; done
for f in "$2"/pids/*; do [ -e "$f" ] && kill -9 "${f##*/}" 2>/dev/null; done
for i in 1 2 3 4 5; do rm -rf "$2" 2>/dev/null && break; sleep 0.5; done
`

// watch cleans up behind tests that are killed, by their own timeout above all.
func watch() error {
	sh := exec.Command("/bin/sh", "-c", watchScript, "bobbin-crash-watch", strconv.Itoa(os.Getpid()), workDir)
	sh.Dir = "/"
	if err := sh.Start(); err != nil {
		return fmt.Errorf("start the watcher of the tests: %w", err)
	}
	return sh.Process.Release()
}

// tempDir returns a folder that is removed after the test, and if it is killed.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(workDir, "test-") //nolint:usetesting // the folder of t.TempDir stays if the tests are killed
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// program builds Bobbin, with the race detector if the test has it, and returns
// the path of the file.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(workDir, "bobbin")
	args := []string{"build", "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, "bobbin")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

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
		dir := tempDir(t)
		test(t, place{dir, "sqlite://" + filepath.Join(dir, "bobbin.db")})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, place{tempDir(t), dbtest.PostgresURL(t)})
	})
}

// open opens the database; the caller closes it.
func (p place) open(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), p.database, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return d
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

// seeded returns the seed of this test's random choices, and prints it.
func seeded(t *testing.T) uint64 {
	t.Helper()
	seed := environmentInt(t, "BOBBIN_CRASH_SEED", int(time.Now().UnixNano()%1_000_000))
	t.Logf("seed: BOBBIN_CRASH_SEED=%d", seed)
	return uint64(seed)
}

// dice returns random choices of their own for one goroutine.
func dice(seed uint64, who int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(who)))
}
