// Package commit writes what changes in sessions, for several sessions in one transaction: whatever
// waits while a commit is under way is written by the next one.
//
// A change names the event number that it was decided for, and is written only if that is still the
// session's last one. So nobody holds a session's row while a change is decided. One that is not
// written, as the session has changed or is locked, or one of its batch is bad, gets ErrAlone: its
// caller locks the session and decides again. If the outcome of a batch is unknown, all of its changes
// get an error, and none is written again.
package commit

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// ErrAlone means that a change was not written, and must be decided again in a transaction of its own.
var ErrAlone = errors.New("not with others")

// maxTime bounds the transaction of a batch.
const maxTime = 10 * time.Second

// Commits are those of a database. They are a gorm plugin to be found through the handle. Safe for
// concurrent use.
type Commits struct {
	Turns   *SessionTurns
	First   *gorm.DB      // SQLite, by a handle that waits for one writer at most: a batch is of all who wait
	writers chan struct{} // holds one token for each writer at work
	tables  sync.Map      // *table by its schema
	texts   sync.Map      // of PostgreSQL's statements, by what they join: building one costs as much as its execution

	mu       sync.Mutex
	deciding map[string]int // see Count; guarded by mu
	next     *batch         // collects changes while the writers are at work, and the next one writes them; nil = none; guarded by mu
}

// New returns commits without any, of which so many batches may be under way.
func New(writers int) *Commits {
	return &Commits{Turns: &SessionTurns{queues: map[core.SessionID]*turnQueue{}}, writers: make(chan struct{}, writers), deciding: map[string]int{}}
}

const pluginName = "bobbin:commits"

// Name is part of gorm.Plugin.
func (*Commits) Name() string { return pluginName }

// Initialize is part of gorm.Plugin.
func (*Commits) Initialize(*gorm.DB) error { return nil }

// Of returns the commits of the database.
func Of(g *gorm.DB) *Commits { return g.Plugins[pluginName].(*Commits) }

// Count adds to the number of changes by that name that are being decided, and returns it.
func (c *Commits) Count(name string, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n += c.deciding[name]
	if c.deciding[name] = n; n == 0 {
		delete(c.deciding, name)
	}
	return n
}

// Change is what is to be written of a session.
type Change struct {
	g       *gorm.DB
	alone   bool           // g is a transaction that has locked the session: each statement is executed immediately
	session models.Session // as it was
	// NoWebhook: it was decided for an owner without a webhook, and is written only for such a one.
	NoWebhook bool
	all       []statement // the first one updates the session
	bytes     int
	written   bool
}

// NewChange returns an empty change for the session.
func NewChange(g *gorm.DB, session models.Session) *Change {
	return &Change{g: g, session: session, all: make([]statement, 1)}
}

// Alone returns a change that the transaction writes, which has locked the session.
func Alone(tx *gorm.DB) *Change { return &Change{g: tx, alone: true} }

// Insert adds rows, a pointer to a row or to a slice of rows.
func (ch *Change) Insert(rows any) error {
	s, err := insertOf(ch.g, ch.session.ID, rows)
	if err == nil && len(s.rows) > 0 {
		_, err = ch.add(s)
	}
	return err
}

// Update adds an UPDATE with a WHERE, and % for each of the values of these types. Alone it returns how
// many rows there were.
func (ch *Change) Update(sql, kinds string, values ...any) (int64, error) {
	if err := convert(values); err != nil {
		return 0, err
	}
	return ch.add(statement{target: sql, kinds: strings.Fields(kinds), rows: [][]any{append([]any{string(ch.session.ID)}, values...)}})
}

func (ch *Change) add(s statement) (int64, error) {
	if ch.alone {
		return s.execute(ch.g)
	}
	ch.all = append(ch.all, s)
	for _, row := range s.rows {
		for _, v := range row {
			text, _ := v.(string)
			ch.bytes += len(text)
		}
	}
	return 1, nil
}

// Write writes the change, after which the session is as given.
func (ch *Change) Write(after models.Session) (err error) {
	var ok bool
	if ch.all[0], ok = sessionUpdate(ch.session, after, ch.NoWebhook); !ok {
		return ErrAlone
	}
	err = Of(ch.g).writeBatched(ch)
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, core.ErrNoDatabase), err != nil && ch.g.Name() == "postgres" && !errors.As(err, &refused):
		return err
	case err != nil || !ch.written:
		return ErrAlone
	}
	return nil
}

// writeBatched returns when the change was written, with the error of its batch. The first of a batch writes it, immediately
// if no writer is at work.
func (c *Commits) writeBatched(ch *Change) error {
	c.mu.Lock()
	b := c.next
	leads := b == nil || len(b.changes) == maxChanges || b.bytes+ch.bytes > maxBytes
	if leads {
		b = &batch{done: make(chan struct{})}
		c.next = b
	}
	b.changes, b.bytes = append(b.changes, ch), b.bytes+ch.bytes
	c.mu.Unlock()
	if !leads {
		<-b.done
		return b.err
	}
	c.writers <- struct{}{}
	defer func() {
		<-c.writers
		close(b.done)
	}()
	c.mu.Lock()
	if c.next == b {
		c.next = nil
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ch.g.Statement.Context), maxTime)
	defer cancel()
	if ch.g.Name() == "postgres" {
		b.err = c.writePostgres(ch.g.WithContext(ctx), b.changes)
	} else {
		b.err = writeSQLite(c.First.WithContext(ctx), b.changes)
	}
	return b.err
}

// writeSQLite writes the changes one after the other. An error of one undoes all.
func writeSQLite(g *gorm.DB, all []*Change) error {
	written := make([]bool, len(all))
	err := g.Transaction(func(tx *gorm.DB) (err error) {
		tx = tx.Raw("") // one statement of gorm for all of them
		for i, ch := range all {
			if written[i], err = ch.execute(tx); err != nil {
				return err
			}
		}
		return nil
	})
	for i, ch := range all {
		ch.written = written[i] && err == nil
	}
	return err
}

// execute writes the change unless the session is another one than it was decided for.
func (ch *Change) execute(tx *gorm.DB) (bool, error) {
	for i, s := range ch.all {
		n, err := s.execute(tx)
		if err == nil && n == 0 && s.target == runUpdate {
			err = ErrAlone
		}
		if err != nil || i == 0 && n == 0 {
			return false, err
		}
	}
	return true, nil
}

// Bounds of a batch.
const (
	maxChanges = 128
	maxBytes   = 1 << 20
)

// batch is what one writer writes.
type batch struct {
	changes []*Change
	bytes   int
	done    chan struct{} // closed after the write
	err     error         // its result; set before done is closed
}

// MaxTurnWait is how long a writer waits for a session.
const MaxTurnWait = 10 * time.Second

// maxWaiters bounds the writers that wait for one session. They hold no connection.
const maxWaiters = 256

// SessionTurns lets one writer of a session in at a time, in the order of arrival, so that
// the clients of one session never occupy more than one connection of the pool. Safe for
// concurrent use.
type SessionTurns struct {
	mu     sync.Mutex
	queues map[core.SessionID]*turnQueue // guarded by mu
}

// turnQueue holds the writers of one session.
type turnQueue struct {
	turn    chan struct{} // holds one token while a writer is active
	writers int           // active and waiting
}

// Take waits for the caller's turn to write to the session; release ends it. The error is a
// core.SessionBusy after 10 s, and immediately while 256 writers wait.
func (t *SessionTurns) Take(ctx context.Context, id core.SessionID) (release func(), err error) {
	t.mu.Lock()
	q := t.queues[id]
	if q == nil {
		q = &turnQueue{turn: make(chan struct{}, 1)}
		t.queues[id] = q
	}
	q.writers++
	tooMany := q.writers > maxWaiters+1
	t.mu.Unlock()
	if tooMany {
		t.removeWriter(id, q)
		return nil, core.SessionBusy(id, "too many requests are waiting to write to it")
	}
	limit := time.NewTimer(MaxTurnWait)
	defer limit.Stop()
	select {
	case q.turn <- struct{}{}:
		return func() {
			<-q.turn
			t.removeWriter(id, q)
		}, nil
	case <-limit.C:
		err = core.SessionBusy(id, "another request is writing to it")
	case <-ctx.Done():
		err = ctx.Err()
	}
	t.removeWriter(id, q)
	return nil, err
}

func (t *SessionTurns) removeWriter(id core.SessionID, q *turnQueue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.writers--; q.writers == 0 {
		delete(t.queues, id)
	}
}
