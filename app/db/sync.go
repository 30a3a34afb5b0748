package db

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"bobbin/app/core"
)

// logSync syncs the write-ahead log of a SQLite file. SQLite itself, with synchronous=FULL,
// would do so in each COMMIT while the next writer waits. logSync does it after the COMMIT,
// once for all commits since the last sync began; only these wait. It uses its own file
// descriptor, which is all that an fsync needs; the log has no locks that closing it could
// release.
//
// Other files are synced by SQLite with synchronous=NORMAL: the log before a checkpoint,
// the database after it, and the log's header when the log restarts.
type logSync struct {
	sync func() error
	turn chan struct{} // holds one token during a sync

	mu   sync.Mutex
	next *syncBatch // the waiters of the next sync; nil = none; guarded by mu
}

// syncBatch is a group of commits that wait for one sync.
type syncBatch struct {
	done chan struct{} // closed after the sync
	err  error         // its result; set before done is closed
}

// newLogSync returns the logSync of the database file at path.
func newLogSync(path string) *logSync {
	return &logSync{sync: func() error { return syncFile(path + "-wal") }, turn: make(chan struct{}, 1)}
}

// wait returns when everything that was committed before the call is on the disk. After an
// error that is unknown.
func (s *logSync) wait() error {
	s.mu.Lock()
	batch := s.next
	leads := batch == nil
	if leads {
		batch = &syncBatch{done: make(chan struct{})}
		s.next = batch
	}
	s.mu.Unlock()
	if leads {
		s.syncFor(batch)
	}
	<-batch.done
	return batch.err
}

// syncFor syncs for the batch as soon as the previous sync has ended. Until then others
// join the batch.
func (s *logSync) syncFor(batch *syncBatch) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	if err := s.sync(); err != nil {
		batch.err = &core.Error{Kind: core.ErrUnavailable, Code: codeUnavailable, Err: fmt.Errorf("%w: sync the write-ahead log: %w", core.ErrNoDatabase, err),
			Message: "the database's disk failed to store a write; try again in a moment"}
	}
	close(batch.done)
}

// syncFile syncs the file. If it no longer exists, SQLite has moved its content into the
// database and synced that before it removed the file.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
