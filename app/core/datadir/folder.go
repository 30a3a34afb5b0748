// Package datadir manages the data folder of a Bobbin process: which process holds it,
// and how to reach that process.
//
// One process executes runs on a folder. It holds the lock file until it ends for
// whatever reason; the operating system releases it then. Other processes read
// server.json to connect to it. Symbolic links out of the folder are not followed, and
// a folder of another user is refused: what is written here ends up here.
package datadir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bobbin/app/core"
)

const (
	lockName   = "bobbin.lock"
	serverName = "server.json"
	workerName = "worker"
)

// Server describes how to reach the process that holds a folder.
type Server struct {
	URL   string       `json:"url"`
	PID   int          `json:"pid"`
	Token string       `json:"token"` // authenticates the same user's command line
	Start StartOptions `json:"start,omitzero"`
}

// StartOptions are the settings that a server's environment and flags added to its
// configuration file, without secrets that have no flag.
type StartOptions struct {
	File     string            `json:"file,omitempty"`     // absolute; empty = none
	Settings map[string]string `json:"settings,omitempty"` // raw values by key
	Secrets  []string          `json:"secrets,omitempty"`  // names of variables whose values are secrets
}

// Is reports whether both are the same process.
func (s Server) Is(other Server) bool {
	return s.URL == other.URL && s.PID == other.PID && s.Token == other.Token
}

// Folder is a data folder that this process holds.
type Folder struct {
	root *os.Root
	lock *Lock
}

// Hold creates the folder if it does not exist and locks it for this process. ErrConflict
// when another process holds it; the message says which. ErrForbidden when it belongs to
// another user.
func Hold(ctx context.Context, path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := core.CheckOwner(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock, holder, err := tryLock(ctx, filepath.Join(path, lockName))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock data folder: %w", err), root.Close())
	}
	if lock == nil {
		return nil, errors.Join(core.Errorf(core.ErrConflict, "%s holds the data folder %s: stop it, or use another folder with --data-dir", holder, path), root.Close())
	}
	return &Folder{root: root, lock: lock}, nil
}

// readFile reads a file of the folder, without following links out of it.
func readFile(path, name string) ([]byte, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // read-only
	return root.ReadFile(name)
}

// Worker returns the name of this folder's process in leases: the same after a restart, so
// that the restarted process takes over its own runs immediately.
func (f *Folder) Worker() (string, error) {
	raw, err := f.root.ReadFile(workerName)
	if name := strings.TrimSpace(string(raw)); err == nil && name != "" {
		return name, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("worker name: %w", err)
	}
	name := core.NewID[string]()
	if err := f.root.WriteFile(workerName, []byte(name+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("worker name: %w", err)
	}
	return name, nil
}

// WorkerOf returns the name of a folder's process in leases; empty = it has none yet.
func WorkerOf(path string) string {
	raw, err := readFile(path, workerName)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}

// OpenTemp creates a subfolder for the files that os.CreateTemp makes with the prefix, and
// removes those that a process which died left there. Everything else in it stays. A link
// out of the folder is an error.
func (f *Folder) OpenTemp(name, prefix string) error {
	if err := f.root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("data folder: %w", err)
	}
	temp, err := f.root.OpenRoot(name)
	if err != nil {
		return fmt.Errorf("data folder: %s: %w", name, err)
	}
	defer func() { _ = temp.Close() }() // nothing was written
	entries, err := fs.ReadDir(temp.FS(), ".")
	if err != nil {
		return fmt.Errorf("data folder: %s: %w", name, err)
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		if _, err := strconv.ParseUint(number, 10, 64); !ok || err != nil || !e.Type().IsRegular() {
			continue
		}
		if err := temp.Remove(e.Name()); err != nil {
			return fmt.Errorf("data folder: %s: %w", name, err)
		}
	}
	return nil
}

// Announce writes how to reach this process, readable by this user only.
func (f *Folder) Announce(s Server) error {
	const temp = serverName + ".new"
	raw, err := json.Marshal(s)
	if err == nil {
		err = f.root.WriteFile(temp, raw, 0o600)
	}
	if err == nil {
		err = f.root.Rename(temp, serverName)
	}
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}

// Release releases the folder.
func (f *Folder) Release() error {
	err := f.root.Remove(serverName)
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.root.Close(), f.lock.Release())
}

// Running returns the process that holds the folder; ok is false if there is none. A
// server.json that a killed process left behind does not count.
func Running(path string) (s Server, ok bool) {
	lock := newLock(filepath.Join(path, lockName), 0)
	if free, err := lock.TryRLock(); err != nil || free {
		_ = lock.Close() // nothing to unlock
		return Server{}, false
	}
	raw, err := readFile(path, serverName)
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return Server{}, false
	}
	return s, true
}
