package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"

	"bobbin/tests/must"
)

// The bounds of starting a server.
const (
	startTimeout = 2 * time.Minute
	startPoll    = 50 * time.Millisecond
)

// cluster is a temporary PostgreSQL in its own folder. Its files:
//
//	data/  the cluster     url  its address, written when it is ready
//	log    of the server   pid  of the server
type cluster struct {
	dir    string
	bin    string // the folder of initdb and postgres
	asUser *user.User
	safe   bool // commits survive a crash of the server
}

// startCluster returns the URL of the cluster of this run of "go test", and starts it
// unless another process of the run has done so.
func startCluster(ctx context.Context) (string, error) {
	bin, err := findPrograms()
	if err != nil {
		return "", err
	}
	asUser, err := serverUser()
	if err != nil {
		return "", err
	}
	owner := runOwner()
	lock := flock.New(clusterPrefix() + "lock")
	if _, err := lock.TryLockContext(ctx, startPoll); err != nil {
		return "", fmt.Errorf("wait for the start of PostgreSQL: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	removeStale()
	c := cluster{dir: clusterPrefix() + owner.String(), bin: bin, asUser: asUser}
	if raw, err := os.ReadFile(filepath.Join(c.dir, "url")); err == nil && pingServer(ctx, string(raw)) == nil {
		return string(raw), nil
	}
	r, err := c.startNew(ctx, owner)
	if err != nil {
		return "", err
	}
	return r.url, os.WriteFile(filepath.Join(c.dir, "url"), []byte(r.url), 0o600)
}

// clusterPrefix is the common prefix of the folders of this user's clusters.
func clusterPrefix() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("bobbin-postgres-%d-", os.Getuid()))
}

// findPrograms returns the folder of PostgreSQL's server programs. Debian keeps
// them out of PATH.
func findPrograms() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", errMissing
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// serverUser is the user that the server runs as, since initdb refuses root; nil = the user
// that runs the tests.
func serverUser() (*user.User, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL cannot run as root, and there is no user postgres: %w", err)
	}
	return u, nil
}

// startNew creates the cluster, replacing an old one, and returns the server when it
// answers.
func (c cluster) startNew(ctx context.Context, owner process) (runningServer, error) {
	if err := os.RemoveAll(c.dir); err != nil {
		return runningServer{}, err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return runningServer{}, err
	}
	if err := c.chownToServer(c.dir); err != nil {
		return runningServer{}, err
	}
	data := filepath.Join(c.dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir = c.dir
	c.prepareCommand(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return runningServer{}, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	var failures error
	for range 3 { // another process may have taken the port meanwhile
		port, err := freePort(ctx)
		if err != nil {
			return runningServer{}, err
		}
		r, err := c.startServer(ctx, owner, port)
		if err == nil {
			return r, nil
		}
		failures = errors.Join(failures, err)
	}
	return runningServer{}, failures
}

// runningServer is a server that answers.
type runningServer struct {
	url    string
	pid    int
	exited <-chan error // receives one value when the server has ended
}

// chownToServer makes the server's user the owner of the path.
func (c cluster) chownToServer(path string) error {
	if c.asUser == nil {
		return nil
	}
	uid, err := strconv.Atoi(c.asUser.Uid)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, -1)
}

// startServer starts the server and its watcher, and waits until the server answers.
func (c cluster) startServer(ctx context.Context, owner process, port string) (runningServer, error) {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return runningServer{}, err
	}
	defer func() { _ = log.Close() }()
	commit := "off"
	if c.safe {
		commit = "on"
	}
	// Not CommandContext: the server outlives this process.
	postgres := exec.Command(filepath.Join(c.bin, "postgres"), "-D", filepath.Join(c.dir, "data"), "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "synchronous_commit="+commit, "-c", "full_page_writes=off",
		"-c", "max_connections=300", "-c", "shared_buffers=64MB", "-c", "autovacuum=off")
	postgres.Dir, postgres.Stdout, postgres.Stderr = c.dir, log, log
	c.prepareCommand(postgres)
	if err := postgres.Start(); err != nil {
		return runningServer{}, fmt.Errorf("start postgres: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- postgres.Wait() }()
	if err := c.startWatcher(owner, postgres.Process.Pid); err != nil {
		return runningServer{}, errors.Join(err, postgres.Process.Kill())
	}
	url := "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
	if err := waitFor(ctx, url, exited); err != nil {
		text, _ := os.ReadFile(log.Name())
		return runningServer{}, fmt.Errorf("start postgres: %w\n%s", err, text)
	}
	return runningServer{url: url, pid: postgres.Process.Pid, exited: exited}, nil
}

// watchScript waits until the owner ($1) or the server ($2) has ended, stops the
// server and removes the folder ($3). SIGQUIT is PostgreSQL's quickest way to end.
const watchScript = `
while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 0.5; done
kill -0 "$1" 2>/dev/null && exit
kill -QUIT "$2" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$2" 2>/dev/null || break; sleep 0.5; done
rm -rf "$3"
`

// startWatcher starts the loop that ends the server with its owner. It has no terminal and
// none of our files, so that no process waits for it.
func (c cluster) startWatcher(owner process, pid int) error {
	if err := os.WriteFile(filepath.Join(c.dir, "pid"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	sh := exec.Command("/bin/sh", "-c", watchScript, "bobbin-test-postgres", strconv.Itoa(owner.pid), strconv.Itoa(pid), c.dir)
	sh.Dir = "/"
	detachCommand(sh)
	if err := sh.Start(); err != nil {
		return fmt.Errorf("start the watcher of postgres: %w", err)
	}
	return sh.Process.Release()
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// waitFor returns when the server answers, or the reason why it cannot.
func waitFor(ctx context.Context, url string, exited <-chan error) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for pingServer(ctx, url) != nil {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-exited:
			return fmt.Errorf("it ended: %w", err)
		case <-tick.C:
		}
	}
	return nil
}

func pingServer(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, strings.TrimSpace(url))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// removeStale removes the clusters of runs whose watcher was killed as well.
func removeStale() {
	dirs, _ := filepath.Glob(clusterPrefix() + "*-*")
	for _, dir := range dirs {
		if owner, ok := parseProcess(strings.TrimPrefix(dir, clusterPrefix())); !ok || owner.isAlive() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "pid"))
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil {
			stopServer(pid, dir)
		}
		_ = os.RemoveAll(dir) // the next run retries what is left
	}
}

// process identifies a process, even if another gets the same number later.
type process struct {
	pid   int
	start string // when it began; letters and digits
}

// String returns pid and start, with a dash between them.
func (p process) String() string { return fmt.Sprintf("%d-%s", p.pid, p.start) }

func parseProcess(s string) (process, bool) {
	pid, start, ok := strings.Cut(s, "-")
	n, err := strconv.Atoi(pid)
	return process{pid: n, start: start}, ok && err == nil
}

// isAlive reports whether the process still runs.
func (p process) isAlive() bool {
	start, _ := processInfo(p.pid)
	return start == p.start
}

// runOwner is the process whose lifetime the cluster shares: the "go test" that started
// this binary, or else the binary itself.
func runOwner() process {
	parent := os.Getppid()
	if start, name := processInfo(parent); name == "go" || name == "go.exe" {
		return process{pid: parent, start: start}
	}
	return thisProcess()
}

// thisProcess is this process.
func thisProcess() process {
	start, _ := processInfo(os.Getpid())
	return process{pid: os.Getpid(), start: start}
}

// processInfo returns the start time of a process and the name of its program; both are
// empty if there is no such process.
func processInfo(pid int) (start, name string) {
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		// pid (name) state ppid … starttime, the 22nd field; the name may hold anything.
		head, tail, _ := strings.Cut(string(raw), "(")
		end := strings.LastIndexByte(tail, ')')
		if head == "" || end < 0 {
			return "", ""
		}
		fields := strings.Fields(tail[end+1:])
		if len(fields) < 20 || fields[0] == "Z" {
			return "", ""
		}
		return fields[19], tail[:end]
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return "", ""
	}
	out, err := exec.Command("ps", "-o", "lstart=,comm=", "-p", strconv.Itoa(pid)).Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 6 { // Fri Nov 21 05:30:00 2026 /path/to/go
		return "", ""
	}
	return strings.ReplaceAll(strings.Join(fields[:5], ""), ":", ""), filepath.Base(fields[5])
}

// Program returns the path of one of PostgreSQL's programs, such as pg_dump. Where it
// is not installed the test is skipped, unless PostgreSQL is required.
func Program(t testing.TB, name string) string {
	t.Helper()
	if bin, err := findPrograms(); err == nil {
		if path := filepath.Join(bin, name); isExecutable(path) {
			return path
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) && !strings.Contains(os.Getenv(requireVariable), "postgres") {
		t.Skipf("%s is not installed: it comes with PostgreSQL", name)
	}
	must.Do(t, err)
	return path
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
