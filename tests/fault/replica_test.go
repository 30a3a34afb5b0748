package fault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bobbin/app/core/datadir"
	"bobbin/tests/process"
)

// The model of the tests: a window so small that summaries are made often.
const (
	modelWindow = 6_000
	modelOutput = 1_000
)

// grace is how long a replica that is stopped lets runs at work go on.
const grace = 2 * time.Second

// careful is an agent whose tool asks before each call.
const careful = `name: careful
system_prompt: You ask before you act.
tools: [calculator]
tool_settings:
  calculator: {approval: always}
`

// replica is a Bobbin in a process of its own. Whoever starts and ends the process holds
// hands; anybody may look at door.
type replica struct {
	name     string
	program  string
	dir      string
	log      string
	database *link
	door     *process.Door

	hands sync.Mutex
	now   *process.Process // nil = none runs; guarded by hands
}

// newReplica writes the replica's configuration. It is not started.
func newReplica(t *testing.T, name, model string, database *link, dbname, cluster string, peers []string) *replica {
	t.Helper()
	dir := den.Temp(t)
	r := &replica{
		name: name, program: den.Program(t, process.Raced), dir: dir, log: filepath.Join(dir, "log"),
		database: database, door: process.NewDoor(),
	}
	config := fmt.Sprintf(`
default_llm: small
models:
  - {name: small, provider: openai, base_url: %q, api_key_env: PROVIDER_KEY, context_window: %d, max_output_tokens: %d}
database: {url: "postgres://postgres@%s/%s?sslmode=disable"}
replica: {name: %s}
nats: {cluster_addr: %q, peers: [%s], secret: hush-hush-hush-hush-hush-hush}
limits: {shutdown_grace: %s, open_streams: 10000, open_streams_per_owner: 10000}
`, model, modelWindow, modelOutput, database.addr(), dbname, name, cluster, strings.Join(peers, ", "), grace)
	err := os.WriteFile(filepath.Join(dir, "bobbin.yaml"), []byte(config), 0o600)
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "agents"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents", "careful.yaml"), []byte(careful), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start starts the process and waits until it can be reached.
func (r *replica) start(ctx context.Context) error {
	r.hands.Lock()
	defer r.hands.Unlock()
	if r.now != nil {
		return nil
	}
	for {
		ended, err := r.launch(ctx)
		if err == nil || !ended || ctx.Err() != nil {
			return err
		}
		// It gave up, as it does without a database: whoever keeps it running tries again.
		if !process.Pause(ctx, 300*time.Millisecond) {
			return err
		}
	}
}

// launch starts the process once; ended says that it ended by itself.
func (r *replica) launch(ctx context.Context) (ended bool, err error) {
	cmd := exec.Command(r.program, "serve", "--config", filepath.Join(r.dir, "bobbin.yaml"), "--data-dir", r.dir,
		"--agents-dir", filepath.Join(r.dir, "agents"), "--addr", "127.0.0.1:0", "--log-format", "text")
	// Nothing of the environment but this: keys of real providers must not be found.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "TMPDIR=" + r.dir, "PROVIDER_KEY=none"}
	if r.now, err = den.Start(cmd, r.log); err != nil {
		return false, err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, ok := r.announcement(); ok {
			r.door.Open(strings.TrimPrefix(s.URL, "http://"))
			return false, nil
		}
		select {
		case <-tick.C:
		case <-r.now.Exited:
			err := fmt.Errorf("%s ended at its start (%s)", r.name, r.now.Cmd.ProcessState)
			r.now = nil
			return true, err
		case <-ctx.Done():
			return false, fmt.Errorf("%s is not ready: %w", r.name, context.Cause(ctx))
		}
	}
}

// announcement returns what the present process says of itself in the data folder.
func (r *replica) announcement() (s datadir.Server, ok bool) {
	raw, err := os.ReadFile(filepath.Join(r.dir, "server.json"))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return s, false
	}
	return s, s.PID == r.now.Cmd.Process.Pid
}

// kill ends the process with SIGKILL, and reports whether there was one.
func (r *replica) kill() bool {
	r.hands.Lock()
	defer r.hands.Unlock()
	if r.now == nil {
		return false
	}
	r.now.Kill()
	r.now = nil
	r.door.Shut()
	return true
}

// freeze suspends the process, as a machine does that stands still; thaw lets it go on.
func (r *replica) freeze() error { return r.signal(syscall.SIGSTOP) }

func (r *replica) thaw() error { return r.signal(syscall.SIGCONT) }

// signal sends a signal to the process, if there is one.
func (r *replica) signal(s syscall.Signal) error {
	r.hands.Lock()
	defer r.hands.Unlock()
	if r.now == nil {
		return nil
	}
	return r.now.Cmd.Process.Signal(s)
}

// stop ends the process as an operator does. One that does not end is killed, and is an
// error.
func (r *replica) stop() error {
	r.hands.Lock()
	defer r.hands.Unlock()
	if r.now == nil {
		return nil
	}
	defer func() {
		r.now = nil
		r.door.Shut()
	}()
	if err := r.now.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case <-r.now.Exited:
		if code := r.now.Cmd.ProcessState.ExitCode(); code != 0 {
			return fmt.Errorf("%s ended with exit code %d after SIGTERM", r.name, code)
		}
		return nil
	case <-limit.C:
		r.now.Kill()
		return fmt.Errorf("%s has not stopped %s after SIGTERM", r.name, patience)
	}
}

// readLog returns what must never be in the log, and counts the errors in it.
func (r *replica) readLog(keep string) (bad []string, errors int) {
	raw, err := os.ReadFile(r.log)
	if err != nil {
		return []string{err.Error()}, 0
	}
	if keep != "" {
		_ = os.WriteFile(filepath.Join(keep, r.name+".log"), raw, 0o600) // a convenience
	}
	for _, word := range []string{"DATA RACE", "panic", "fatal error:", "code=internal"} {
		if i := bytes.Index(raw, []byte(word)); i >= 0 {
			bad = append(bad, fmt.Sprintf("the log of %s has %q:\n%s", r.name, word, raw[max(0, i-400):min(len(raw), i+3000)]))
		}
	}
	return bad, bytes.Count(raw, []byte("level=ERROR"))
}
