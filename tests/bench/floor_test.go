package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite

	"bobbin/tests/must"
	"bobbin/tests/process"
)

// The rows of a turn, as bare as they can be: the run, both messages, four events, the call, the session.
const floorSchema = `
CREATE TABLE floor_sessions (id TEXT PRIMARY KEY, last_seq BIGINT, last_event_seq BIGINT);
CREATE TABLE floor_runs (id TEXT PRIMARY KEY, session_id TEXT, status TEXT);
CREATE TABLE floor_messages (id TEXT PRIMARY KEY, session_id TEXT, seq BIGINT, content TEXT);
CREATE TABLE floor_events (session_id TEXT, event_seq BIGINT, type TEXT, data TEXT, PRIMARY KEY (session_id, event_seq));
CREATE TABLE floor_calls (id TEXT PRIMARY KEY, run_id TEXT, tokens BIGINT)`

// maxShared is how many writes share a commit.
const maxShared = 256

// floorWrite is one of the two writes of a turn.
type floorWrite struct {
	statements []string
	args       [][]any
	done       chan error
}

// newFloor returns what writes the rows of a turn and does nothing else: writes that wait share a
// commit, as one writer makes it.
func newFloor(t *testing.T, name, url string) target {
	t.Helper()
	driver, dsn, x := "pgx", url, target{name: name}
	if file, ok := strings.CutPrefix(url, "sqlite://"); ok {
		driver, dsn = "sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_txlock=immediate"
		x.file = file
	} else {
		x.database = connect(t, url)
	}
	pool := must.Get(sql.Open(driver, dsn))(t)
	pool.SetMaxOpenConns(1)
	for stmt := range strings.SplitSeq(floorSchema, ";") {
		must.Get(pool.ExecContext(t.Context(), stmt))(t)
	}
	writes := make(chan floorWrite, maxShared)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		writeFloor(t.Context(), pool, writes)
	}()
	t.Cleanup(func() {
		close(writes)
		<-stopped
		_ = pool.Close()
	})
	x.newTurns = func(t *testing.T, _ int, _ bool) func() (time.Duration, error) {
		t.Helper()
		session := uuid.NewString()
		must.Get(pool.ExecContext(t.Context(), "INSERT INTO floor_sessions VALUES ($1, 0, 0)", session))(t)
		turns := 0
		return func() (time.Duration, error) {
			turns++
			return 0, floorTurn(session, turns, writes)
		}
	}
	return x
}

// floorTurn writes the rows of a turn.
func floorTurn(session string, turn int, writes chan<- floorWrite) error {
	run, question, answer := uuid.NewString(), messageText, strings.Repeat(chunkText, answerChunks)
	event := func(n int) []any {
		return []any{session, 4*(turn-1) + n, "event", `{"run_id":"` + run + `"}`}
	}
	const insertMessage, insertEvents = "INSERT INTO floor_messages VALUES ($1, $2, $3, $4)", "INSERT INTO floor_events VALUES ($1, $2, $3, $4), ($5, $6, $7, $8)"
	accept := floorWrite{done: make(chan error, 1), statements: []string{
		"INSERT INTO floor_runs VALUES ($1, $2, 'running')", insertMessage, insertEvents, "UPDATE floor_sessions SET last_seq = $1, last_event_seq = $2 WHERE id = $3",
	}, args: [][]any{{run, session}, {uuid.NewString(), session, 2*turn - 1, question}, append(event(1), event(2)...), {2*turn - 1, 4*turn - 2, session}}}
	writes <- accept
	if err := <-accept.done; err != nil {
		return err
	}
	finish := floorWrite{done: make(chan error, 1), statements: []string{
		"UPDATE floor_runs SET status = 'succeeded' WHERE id = $1", insertMessage, "INSERT INTO floor_calls VALUES ($1, $2, 188)", insertEvents,
		"UPDATE floor_sessions SET last_seq = $1, last_event_seq = $2 WHERE id = $3",
	}, args: [][]any{{run}, {uuid.NewString(), session, 2 * turn, answer}, {uuid.NewString(), run}, append(event(3), event(4)...), {2 * turn, 4 * turn, session}}}
	writes <- finish
	return <-finish.done
}

// writeFloor writes what waits, and commits it together.
func writeFloor(ctx context.Context, pool *sql.DB, writes <-chan floorWrite) {
	prepared := map[string]*sql.Stmt{}
	for first := range writes {
		shared := []floorWrite{first}
		for more := true; more && len(shared) < maxShared; {
			select {
			case w, ok := <-writes:
				if more = ok; ok {
					shared = append(shared, w)
				}
			default:
				more = false
			}
		}
		err := commitShared(ctx, pool, prepared, shared)
		for _, w := range shared {
			w.done <- err
		}
	}
}

// commitShared writes everything in one transaction.
func commitShared(ctx context.Context, pool *sql.DB, prepared map[string]*sql.Stmt, shared []floorWrite) error {
	for _, w := range shared {
		for _, stmt := range w.statements {
			if prepared[stmt] == nil {
				s, err := pool.PrepareContext(ctx, stmt)
				if err != nil {
					return fmt.Errorf("prepare: %w", err)
				}
				prepared[stmt] = s
			}
		}
	}
	tx, err := pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, w := range shared {
		for i, stmt := range w.statements {
			if _, err := tx.StmtContext(ctx, prepared[stmt]).ExecContext(ctx, w.args[i]...); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
	}
	return tx.Commit()
}

// patience is how long a program may take to start.
const patience = time.Minute

// serve starts a Bobbin, ends it after the test, and returns where it answers and its process.
func serve(t *testing.T, den *process.Den, settings, database string) (url string, pid int) {
	t.Helper()
	s := den.NewServer(t, den.Program(t, false), den.Temp(t), settings, "BOBBIN_DATABASE_URL="+database)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Serve(ctx); err != nil {
		log, _ := s.ReadLog()
		t.Fatalf("%v:\n%s", err, log)
	}
	return "http://" + s.Door.Addr(), s.PID()
}
