// Package process runs the real program, Bobbin, in processes of its own for tests
// that kill it. However the tests end, a small shell loop ends what they left running
// and removes their folder.
package process

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"bobbin/tests/must"
)

// Den is the folder of a test binary: the program that it starts, its data, and the ids
// of its processes as names of files. Safe for concurrent use.
type Den struct {
	Dir string

	once    sync.Once
	program string
	failure error
}

// Open makes the folder; the name says whose it is. Close removes it.
func Open(name string) (*Den, error) {
	dir, err := os.MkdirTemp("", "bobbin-"+name+"-")
	if err != nil {
		return nil, err
	}
	d := &Den{Dir: dir}
	if err := os.Mkdir(d.pids(), 0o700); err != nil {
		return nil, err
	}
	return d, d.watch(name)
}

// Main runs the tests of a package, whose den is open meanwhile and named after the package; after
// are called behind the tests. It does not return.
func Main(m *testing.M, name string, den **Den, after ...func()) {
	var err error
	if *den, err = Open(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, end := range after {
		end()
	}
	(*den).Close()
	os.Exit(code)
}

// Close removes the folder.
func (d *Den) Close() { _ = os.RemoveAll(d.Dir) } // what is left the loop removes

func (d *Den) pids() string { return filepath.Join(d.Dir, "pids") }

// watchScript waits until the tests ($1) have ended, however they do, kills what
// they have left running and removes their folder ($2).
const watchScript = `
trap '' INT TERM HUP
while kill -0 "$1" 2>/dev/null; do sleep 0.5; done
for f in "$2"/pids/*; do [ -e "$f" ] && kill -9 "${f##*/}" 2>/dev/null; done
for i in 1 2 3 4 5; do rm -rf "$2" 2>/dev/null && break; sleep 0.5; done
`

// watch cleans up behind tests that are killed, by their own timeout above all.
func (d *Den) watch(name string) error {
	sh := exec.Command("/bin/sh", "-c", watchScript, "bobbin-"+name+"-watch", strconv.Itoa(os.Getpid()), d.Dir)
	sh.Dir = "/"
	if err := sh.Start(); err != nil {
		return fmt.Errorf("start the watcher of the tests: %w", err)
	}
	return sh.Process.Release()
}

// Temp returns a folder that is removed after the test, and if it is killed.
func (d *Den) Temp(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(d.Dir, "test-") //nolint:usetesting // the folder of t.TempDir stays if the tests are killed
	must.Do(t, err)
	t.Cleanup(func() {
		must.Do(t, os.RemoveAll(dir))
	})
	return dir
}

// Program builds Bobbin, once, with the race detector or without, and returns the path
// of the file. Without, it is the one that scripts/test has linked for all packages, if it has.
func (d *Den) Program(t testing.TB, race bool) string {
	t.Helper()
	d.once.Do(func() {
		if d.program = os.Getenv("BOBBIN_TEST_PROGRAM"); d.program != "" && !race {
			return
		}
		noteSource()
		d.program = filepath.Join(d.Dir, "bobbin")
		args := []string{"build", "-ldflags=-s -w", "-o", d.program} // half the linker's time
		if race {
			// As scripts/test has it: what that compiled is not compiled again.
			args = append(args, "-race", "-gcflags=modernc.org/...=-race=false")
		}
		build := exec.Command("go", append(args, "bobbin")...)
		build.Env = append(os.Environ(), "GOGC=400") // see scripts/test
		if out, err := build.CombinedOutput(); err != nil {
			d.failure = fmt.Errorf("go build: %w\n%s", err, out)
		}
	})
	if d.failure != nil {
		t.Fatal(d.failure)
	}
	return d.program
}

// noteSource opens all folders of the module: go test answers from its cache while no file that a
// test opened has changed, and does not know what the compiler or Node open.
func noteSource() {
	root, err := filepath.Abs(".")
	for err == nil && root != filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Dir(root)
	}
	_ = filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "node_modules", "venv"}, entry.Name()) {
			return filepath.SkipDir
		}
		return nil // what cannot be opened cannot be noted
	})
}

// Process is a process that was started.
type Process struct {
	Cmd    *exec.Cmd
	Exited <-chan struct{} // closed when it has ended; Cmd.ProcessState says how
}

// Start starts the command, whose output goes to the end of the file log.
func (d *Den) Start(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }() // the child has it too
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := filepath.Join(d.pids(), strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(pid, nil, 0o600); err != nil {
		_ = cmd.Process.Kill()
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		_ = os.Remove(pid)
		close(exited)
	}()
	return &Process{Cmd: cmd, Exited: exited}, nil
}

// Kill ends the process with SIGKILL and returns when it was gone.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended by itself
	<-p.Exited
}

// FreeAddress returns an address of this machine that nobody listens on, for a server that has to
// be told where to listen, or is started again at the same place. Its host belongs to this
// process: nobody else is given the port before the server listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	pid := os.Getpid()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", fmt.Sprintf("127.%d.%d.%d:0", 64+pid>>16&127, pid>>8&255, pid&255))
	if err != nil { // only Linux has all addresses from 127.0.0.0 on
		listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	}
	must.Do(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// FreeAddressOf returns an address on one of this machine's hosts that nobody listens on.
func FreeAddressOf(t testing.TB, host string) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Skipf("the test needs several loopback addresses: %v", err)
	}
	must.Do(t, l.Close())
	return l.Addr().String()
}

// Door is where a process can be reached: its address while it is up. Safe for
// concurrent use.
type Door struct {
	mu   sync.Mutex
	addr string        // empty while it is down; guarded by mu
	up   chan struct{} // closed while it is up; guarded by mu
}

// NewDoor returns the door of a process that is down.
func NewDoor() *Door { return &Door{up: make(chan struct{})} }

// Open says where the process is now.
func (d *Door) Open(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addr == "" {
		close(d.up)
	}
	d.addr = addr
}

// Shut says that it is down.
func (d *Door) Shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.addr != "" {
		d.addr, d.up = "", make(chan struct{})
	}
}

// Addr returns where the process is, empty while it is down.
func (d *Door) Addr() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addr
}

// Dial connects to the process, as soon as there is one. It fits http.Transport.
func (d *Door) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	for {
		d.mu.Lock()
		addr, up := d.addr, d.up
		d.mu.Unlock()
		if addr != "" {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		}
		select {
		case <-up:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Pause waits for d and reports false if ctx ended before.
func Pause(ctx context.Context, d time.Duration) bool { return PauseUnless(ctx, d, nil) }

// Await waits until the condition holds, and fails the test when it does not within two minutes.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for limit := time.Now().Add(2 * time.Minute); !holds(); Pause(t.Context(), 20*time.Millisecond) {
		must.True(t, !time.Now().After(limit), "%s: not within two minutes", what)
	}
}

// PauseUnless is Pause that ends with the channel, too.
func PauseUnless(ctx context.Context, d time.Duration, closed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-closed:
	case <-ctx.Done():
	}
	return false
}
