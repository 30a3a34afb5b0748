package bench_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bobbin/app/core/datadir"
	"bobbin/tests/process"
)

// patience is how long a program may take to start.
const patience = time.Minute

// serve starts the program, ends it after the test, and returns where it answers and its process.
func serve(t *testing.T, den *process.Den, program, dir, config, database string) (url string, pid int) {
	t.Helper()
	cmd := exec.Command(program, "serve", "--config", config, "--data-dir", dir,
		"--agents-dir", filepath.Join(dir, "agents"), "--addr", "127.0.0.1:0", "--log-format", "text")
	// Nothing of the environment but this: keys of real providers must not be found.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "BOBBIN_DATABASE_URL=" + database}
	log := filepath.Join(dir, "log")
	running, err := den.Start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		running.Kill()
		if text, err := os.ReadFile(log); t.Failed() && err == nil {
			t.Logf("%s:\n%s", program, text[max(0, len(text)-4000):])
		}
	})
	tick, late := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		var s datadir.Server
		raw, err := os.ReadFile(filepath.Join(dir, "server.json"))
		if err == nil && json.Unmarshal(raw, &s) == nil && answers(t, s.URL) {
			return s.URL, cmd.Process.Pid
		}
		select {
		case <-tick.C:
		case <-running.Exited:
			t.Fatalf("%s ended at its start (%s)", program, cmd.ProcessState)
		case <-late:
			t.Fatalf("%s is not ready after %s", program, patience)
		}
	}
}

// answers reports whether the server takes requests.
func answers(t *testing.T, url string) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/version", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
}
