// Package folder is the data folder of a Bobbin process: who holds it, and where
// the process that holds it can be reached.
//
// One process executes runs on a folder. It holds the lock file until it ends,
// however it ends; the operating system lets go of it then. Others read
// server.json to talk to it.
package folder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"bobbin/app/core"
)

const (
	lockName   = "bobbin.lock"
	serverName = "server.json"
	workerName = "worker"
)

// Server says where the process that holds a folder can be reached.
type Server struct {
	URL   string `json:"url"`
	PID   int    `json:"pid"`
	Token string `json:"token"` // lets the same user's command line in
}

// Folder is a data folder that this process holds.
type Folder struct {
	path string
	lock *flock.Flock
}

// Hold makes the folder if it does not exist and takes it for this process.
// ErrConflict when another process holds it; the message says which.
func Hold(ctx context.Context, path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock := flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))
	// A look by Running holds the lock for a moment: it is worth a second try.
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	ok, err := lock.TryLockContext(ctx, 50*time.Millisecond)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("lock data folder: %w", err)
	}
	if !ok {
		return nil, heldBy(path)
	}
	// The number is for people; the lock itself is what counts.
	if err := os.WriteFile(filepath.Join(path, lockName), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: %w", err), lock.Unlock())
	}
	return &Folder{path: path, lock: lock}, nil
}

// heldBy says who holds the folder.
func heldBy(path string) error {
	who := "another process"
	if raw, err := os.ReadFile(filepath.Join(path, lockName)); err == nil && len(raw) > 0 {
		who = "process " + strings.TrimSpace(string(raw))
	}
	return core.Errorf(core.ErrConflict, "%s holds the data folder %s: stop it, or use another folder with --data-dir", who, path)
}

// Worker returns the name of this folder's process in leases: the same after a
// restart, so that the restart takes over its own runs at once.
func (f *Folder) Worker() (string, error) {
	file := filepath.Join(f.path, workerName)
	raw, err := os.ReadFile(file)
	if name := strings.TrimSpace(string(raw)); err == nil && name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("worker name: %w", err)
	}
	name := core.NewID[string]()
	if err := os.WriteFile(file, []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("worker name: %w", err)
	}
	return name, nil
}

// WorkerOf returns the name of a folder's process in leases; empty = it has none yet.
func WorkerOf(path string) string {
	raw, err := os.ReadFile(filepath.Join(path, workerName))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// Announce writes where this process can be reached, for this user only.
func (f *Folder) Announce(s Server) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	temp := filepath.Join(f.path, serverName+".new")
	if err := os.WriteFile(temp, raw, 0o600); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	if err := os.Rename(temp, filepath.Join(f.path, serverName)); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}

// Release lets go of the folder.
func (f *Folder) Release() error {
	err := os.Remove(filepath.Join(f.path, serverName))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.lock.Unlock())
}

// Running returns the process that holds the folder; ok is false if none does. A
// server.json that a killed process left behind does not count.
func Running(path string) (s Server, ok bool) {
	lock := flock.New(filepath.Join(path, lockName))
	if _, err := os.Stat(lock.Path()); err != nil {
		return Server{}, false
	}
	if free, err := lock.TryRLock(); err != nil || free {
		_ = lock.Close() // only looked
		return Server{}, false
	}
	raw, err := os.ReadFile(filepath.Join(path, serverName))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return Server{}, false
	}
	return s, true
}
