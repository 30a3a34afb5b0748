package datadir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"bobbin/app/core"
)

// serveSuffix ends the name of the lock beside a database file.
const serveSuffix = ".serve.lock"

// How long, and how often, to try to lock: Running holds a lock for a moment to check it.
const (
	maxLockWait = 300 * time.Millisecond
	lockPoll    = 50 * time.Millisecond
)

// Lock is a file that this process has locked. The operating system unlocks it when the
// process ends, for whatever reason.
type Lock struct {
	file *flock.Flock
}

// HoldDatabase locks the existing database file for this process: one process executes its
// runs, whatever its data folder is. ErrConflict when another process holds it; the message
// says which. Reading the database and backups need no lock.
func HoldDatabase(ctx context.Context, path string) (*Lock, error) {
	file, err := filepath.EvalSymlinks(path) // one lock for all of its names
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	lock, holder, err := tryLock(ctx, file+serveSuffix)
	if err != nil {
		return nil, fmt.Errorf("lock database: %w", err)
	}
	if lock == nil {
		return nil, core.Errorf(core.ErrConflict, "%s uses the database %s with another data folder: stop it, or use another file with --database-url", holder, path)
	}
	return lock, nil
}

// tryLock locks the file and writes this process's number into it. Lock is nil if another
// process, the holder, has locked it.
func tryLock(ctx context.Context, path string) (lock *Lock, holder string, err error) {
	file := newLock(path, os.O_CREATE)
	ctx, cancel := context.WithTimeout(ctx, maxLockWait)
	defer cancel()
	ok, err := file.TryLockContext(ctx, lockPoll)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, "", err
	}
	if !ok {
		holder = "another process"
		if raw, err := readFile(filepath.Dir(path), filepath.Base(path)); err == nil && len(raw) > 0 {
			holder = "process " + strings.TrimSpace(string(raw))
		}
		return nil, holder, nil
	}
	// The number is for people; the lock itself is what counts. No link leads out of the folder.
	root, err := os.OpenRoot(filepath.Dir(path))
	if err == nil {
		err = errors.Join(root.WriteFile(filepath.Base(path), fmt.Appendf(nil, "%d\n", os.Getpid()), 0o600), root.Close())
	}
	if err != nil {
		return nil, "", errors.Join(err, file.Unlock())
	}
	return &Lock{file: file}, "", nil
}

// newLock returns the lock of a file that must not be a symbolic link.
func newLock(path string, flags int) *flock.Flock {
	return flock.New(path, flock.SetPermissions(0o600), flock.SetFlag(flags|os.O_RDONLY|core.NoFollow))
}

// Release unlocks the file. It does nothing for nil.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return l.file.Unlock()
}
