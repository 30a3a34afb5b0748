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
	"time"

	"github.com/gofrs/flock"
	"github.com/jackc/pgx/v5"
)

// The times that starting may take.
const (
	startTimeout = 2 * time.Minute
	startPoll    = 50 * time.Millisecond
)

// cluster is a temporary PostgreSQL in a folder of its own. Its files:
//
//	data/  the cluster     url  where it listens, written when it is ready
//	log    of the server   pid  of the server
type cluster struct {
	dir    string
	bin    string // the folder of initdb and postgres
	asUser *user.User
	safe   bool // what is committed outlives a crash of the server
}

// startCluster returns the URL of the cluster of this run of "go test", and starts
// it if no other process of the run has done so.
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
	lock := flock.New(prefix() + "lock")
	if _, err := lock.TryLockContext(ctx, startPoll); err != nil {
		return "", fmt.Errorf("wait for the start of PostgreSQL: %w", err)
	}
	defer func() { _ = lock.Unlock() }()
	removeStale()
	c := cluster{dir: prefix() + owner.String(), bin: bin, asUser: asUser}
	if raw, err := os.ReadFile(filepath.Join(c.dir, "url")); err == nil && answers(ctx, string(raw)) == nil {
		return string(raw), nil
	}
	r, err := c.start(ctx, owner)
	if err != nil {
		return "", err
	}
	return r.url, os.WriteFile(filepath.Join(c.dir, "url"), []byte(r.url), 0o600)
}

// prefix is where the folders of this user's clusters begin.
func prefix() string {
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

// serverUser is the user that the server runs as: initdb refuses root. Nil is
// whoever runs the tests.
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

// start makes the cluster anew and returns the server when it answers.
func (c cluster) start(ctx context.Context, owner process) (running, error) {
	if err := os.RemoveAll(c.dir); err != nil {
		return running{}, err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return running{}, err
	}
	if err := c.give(c.dir); err != nil {
		return running{}, err
	}
	data := filepath.Join(c.dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(c.bin, "initdb"), "--pgdata="+data, "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
	initdb.Dir = c.dir
	c.prepare(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return running{}, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	var failures error
	for range 3 { // somebody else may have taken the port in between
		port, err := freePort(ctx)
		if err != nil {
			return running{}, err
		}
		r, err := c.serve(ctx, owner, port)
		if err == nil {
			return r, nil
		}
		failures = errors.Join(failures, err)
	}
	return running{}, failures
}

// running is a server that answers.
type running struct {
	url    string
	pid    int
	exited <-chan error // gets one value when it has ended
}

// give makes the server's user the owner of the path.
func (c cluster) give(path string) error {
	if c.asUser == nil {
		return nil
	}
	uid, err := strconv.Atoi(c.asUser.Uid)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, -1)
}

// serve starts the server and what will stop it, and waits until it answers.
func (c cluster) serve(ctx context.Context, owner process, port string) (running, error) {
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return running{}, err
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
	c.prepare(postgres)
	if err := postgres.Start(); err != nil {
		return running{}, fmt.Errorf("start postgres: %w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- postgres.Wait() }()
	if err := c.watch(owner, postgres.Process.Pid); err != nil {
		return running{}, errors.Join(err, postgres.Process.Kill())
	}
	url := "postgres://postgres@127.0.0.1:" + port + "/postgres?sslmode=disable"
	if err := waitFor(ctx, url, exited); err != nil {
		text, _ := os.ReadFile(log.Name())
		return running{}, fmt.Errorf("start postgres: %w\n%s", err, text)
	}
	return running{url: url, pid: postgres.Process.Pid, exited: exited}, nil
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

// watch starts the loop that ends the server with its owner. It has no terminal
// and none of our files, so that nobody waits for it.
func (c cluster) watch(owner process, pid int) error {
	if err := os.WriteFile(filepath.Join(c.dir, "pid"), []byte(strconv.Itoa(pid)), 0o600); err != nil {
		return err
	}
	sh := exec.Command("/bin/sh", "-c", watchScript, "bobbin-test-postgres", strconv.Itoa(owner.pid), strconv.Itoa(pid), c.dir)
	sh.Dir = "/"
	detach(sh)
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

// waitFor returns when the server answers, or why it never will.
func waitFor(ctx context.Context, url string, exited <-chan error) error {
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for answers(ctx, url) != nil {
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

func answers(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, strings.TrimSpace(url))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// removeStale removes what runs left behind whose watcher was killed, too.
func removeStale() {
	dirs, _ := filepath.Glob(prefix() + "*-*")
	for _, dir := range dirs {
		if owner, ok := parseProcess(strings.TrimPrefix(dir, prefix())); !ok || owner.alive() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "pid"))
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && bad == nil {
			stopServer(pid, dir)
		}
		_ = os.RemoveAll(dir) // what is left is tried again by the next run
	}
}
