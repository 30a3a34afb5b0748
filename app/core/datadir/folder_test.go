package datadir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestOneProcessHoldsTheFolder(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f, err := datadir.Hold(t.Context(), path)
	must.Do(t, err)
	_, err = datadir.Hold(t.Context(), path)
	if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second hold: %v, want a conflict that names process %d", err, os.Getpid())
	}
	must.Do(t, f.Release())
	again := must.Get(datadir.Hold(t.Context(), path))(t)
	must.Do(t, again.Release())
}

func TestRunningIsFoundOnlyWhileItRuns(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if _, ok := datadir.Running(path); ok {
		t.Error("found a process in an empty folder")
	}
	f := must.Get(datadir.Hold(t.Context(), path))(t)
	want := datadir.Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Token: "secret"}
	must.Do(t, f.Announce(want))
	if got, ok := datadir.Running(path); !ok || !got.Is(want) {
		t.Errorf("running = %+v, %v, want %+v", got, ok, want)
	}
	compare.Equal(t, "server.json, want it for this user only", 0o600, must.Get(os.Stat(path+"/server.json"))(t).Mode().Perm())
	raw := must.Get(os.ReadFile(path + "/server.json"))(t)
	must.Do(t, f.Release())
	// What a killed process leaves behind does not count.
	must.Do(t, os.WriteFile(path+"/server.json", raw, 0o600))
	if s, ok := datadir.Running(path); ok {
		t.Errorf("found %+v, which does not run", s)
	}
}

func TestWorkerNameStays(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var names [2]string
	for i := range names {
		f, err := datadir.Hold(t.Context(), path)
		must.Do(t, err)
		if names[i], err = f.Worker(); err != nil {
			t.Fatal(err)
		}
		must.Do(t, f.Release())
	}
	if names[0] == "" || names[0] != names[1] {
		t.Errorf("worker names %q", names)
	}
}

// Whoever put symbolic links into the folder has nothing written, read or made elsewhere.
func TestSymbolicLinksLeadNowhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bobbin.lock", "server.json.new", "worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, outside := t.TempDir(), t.TempDir()
			victim, made := filepath.Join(outside, "victim"), filepath.Join(outside, "made")
			must.Do(t, os.WriteFile(victim, []byte("important"), 0o600))
			for _, target := range []string{victim, made} {
				_ = os.Remove(filepath.Join(path, name)) // there is none yet the first time
				if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
					t.Skipf("no symbolic links here: %v", err)
				}
				f, err := datadir.Hold(t.Context(), path)
				if err == nil {
					_, workerErr := f.Worker()
					err = errors.Join(workerErr, f.Announce(datadir.Server{URL: "http://127.0.0.1:1"}), f.Release())
				}
				if err == nil {
					t.Errorf("a link to %s: got no error", target)
				}
			}
			compare.Equal(t, "the file of somebody else", "important", string(must.Get(os.ReadFile(victim))(t)))
			compare.Error(t, "a file was made elsewhere", os.ErrNotExist, compare.ErrorOf(os.Lstat(made)))
		})
	}
}

// A lock that somebody else holds elsewhere does not make a process out of a
// server.json that came with a folder.
func TestRunningFollowsNoLinks(t *testing.T) {
	t.Parallel()
	held, fake := t.TempDir(), t.TempDir()
	f := must.Get(datadir.Hold(t.Context(), held))(t)
	if err := os.Symlink(filepath.Join(held, "bobbin.lock"), filepath.Join(fake, "bobbin.lock")); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	must.Do(t, os.WriteFile(filepath.Join(fake, "server.json"), []byte(`{"url": "http://evil.example", "token": "x"}`), 0o600))
	if s, ok := datadir.Running(fake); ok {
		t.Errorf("found %+v by somebody else's lock", s)
	}
	must.Do(t, f.Release())
}
