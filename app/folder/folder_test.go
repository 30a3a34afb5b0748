package folder_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/folder"
)

func TestOneProcessHoldsTheFolder(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	f, err := folder.Hold(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = folder.Hold(t.Context(), path)
	if !errors.Is(err, core.ErrConflict) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("second hold: %v, want a conflict that names process %d", err, os.Getpid())
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := folder.Hold(t.Context(), path)
	if err != nil {
		t.Fatalf("hold after release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestRunningIsFoundOnlyWhileItRuns(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	if _, ok := folder.Running(path); ok {
		t.Error("found a process in an empty folder")
	}
	f, err := folder.Hold(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	want := folder.Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Token: "secret"}
	if err := f.Announce(want); err != nil {
		t.Fatal(err)
	}
	if got, ok := folder.Running(path); !ok || got != want {
		t.Errorf("running = %+v, %v, want %+v", got, ok, want)
	}
	info, err := os.Stat(path + "/server.json")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("server.json: %v, %v, want it for this user only", info, err)
	}
	raw, err := os.ReadFile(path + "/server.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	// What a killed process leaves behind does not count.
	if err := os.WriteFile(path+"/server.json", raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, ok := folder.Running(path); ok {
		t.Errorf("found %+v, which does not run", s)
	}
}

func TestWorkerNameStays(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	var names [2]string
	for i := range names {
		f, err := folder.Hold(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if names[i], err = f.Worker(); err != nil {
			t.Fatal(err)
		}
		if err := f.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if names[0] == "" || names[0] != names[1] {
		t.Errorf("worker names %q", names)
	}
}
