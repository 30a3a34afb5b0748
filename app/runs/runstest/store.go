package runstest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
)

// lease is how long a lease holds, as in the repositories.
const lease = 30 * time.Second

// DB is storage in memory. Safe for concurrent use.
type DB struct {
	mu        sync.Mutex
	sessions  map[core.SessionID]*log
	runs      map[core.RunID]*core.Run
	approvals map[core.RunID][]core.Approval
	last      map[core.RunID]lastWrite
	partials  []string
	calls     map[string]int
	fault     func(call string) error
	after     func(call string) error
	broken    []string
}

// lastWrite is the last write of a run, and what it came to.
type lastWrite struct {
	id      string
	attempt int
	written core.Written
}

// log is a session with what belongs to it.
type log struct {
	prepared   int    // version of the prepared summary; 0 = none
	summarizer string // who makes a summary
	session    core.Session
	queueSeq   int64
	messages   []core.Message
	summaries  []core.Summary
	starts     []core.ToolExecution
	events     []core.Event
	fresh      []core.Event // of the present call
	forgotten  int64        // events that are not kept any more
}

// New returns an empty DB.
func New() *DB {
	return &DB{sessions: map[core.SessionID]*log{}, runs: map[core.RunID]*core.Run{}, approvals: map[core.RunID][]core.Approval{}, last: map[core.RunID]lastWrite{}, calls: map[string]int{}}
}

// Fail lets f decide, by the name of a call such as "Write", whether the call
// fails before it does anything. Nil = none fails.
func (db *DB) Fail(f func(call string) error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.fault = f
}

// FailAfter is like Fail for calls that are committed, but whose answer is lost.
func (db *DB) FailAfter(f func(call string) error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.after = f
}

// Calls returns how often a method was called.
func (db *DB) Calls(call string) int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.calls[call]
}

// Partials returns what SavePartial was given, in order.
func (db *DB) Partials() []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Clone(db.partials)
}

// Log returns the messages of a session.
func (db *DB) Log(id core.SessionID) []core.Message {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Clone(db.sessions[id].messages)
}

// History returns the events of a session.
func (db *DB) History(id core.SessionID) []core.Event {
	db.mu.Lock()
	defer db.mu.Unlock()
	return slices.Clone(db.sessions[id].events)
}

// Run returns a run as it is stored.
func (db *DB) Run(id core.RunID) core.Run {
	db.mu.Lock()
	defer db.mu.Unlock()
	return *db.runs[id]
}

// Runs returns the runs of a session in the order of acceptance.
func (db *DB) Runs(id core.SessionID) []core.Run {
	db.mu.Lock()
	defer db.mu.Unlock()
	var out []core.Run
	for _, r := range db.of(id) {
		out = append(out, *r)
	}
	return out
}

// AddSession stores a session of the owner "ann" with the agent "assistant".
func (db *DB) AddSession() core.Session {
	s, err := db.SessionStore().Create(context.Background(), core.Session{Owner: "ann", Agent: "assistant"})
	if err != nil {
		panic(err)
	}
	return s
}

// Check returns what promises were broken, also those that only the whole shows.
func (db *DB) Check() []string {
	db.mu.Lock()
	defer db.mu.Unlock()
	out := slices.Clone(db.broken)
	for id, l := range db.sessions {
		for i, e := range l.events {
			if e.Seq != l.forgotten+int64(i+1) {
				out = append(out, fmt.Sprintf("session %s: event %d has number %d", id, i+1, e.Seq))
			}
		}
		out = append(out, checkLog(l)...)
	}
	return out
}

// checkLog checks that messages of runs do not mix, and that calls are answered.
func checkLog(l *log) []string {
	var out []string
	var last core.RunID
	done := map[core.RunID]bool{}
	open := map[string]bool{}
	for i, m := range l.messages {
		if m.Seq != int64(i+1) {
			out = append(out, fmt.Sprintf("message %d has seq %d", i+1, m.Seq))
		}
		if m.RunID != last && done[m.RunID] {
			out = append(out, fmt.Sprintf("message %d of run %s comes after another run's", m.Seq, m.RunID))
		}
		last = m.RunID
		done[last] = true
		for _, c := range m.ToolCalls {
			open[c.ID] = true
		}
		delete(open, m.ToolCallID)
	}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("%d tool calls without a result", len(open)))
	}
	return out
}

// do runs f as one transaction.
func (db *DB) do(ctx context.Context, call string, f func() error) error {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.calls[call]++
	if db.fault != nil {
		if err := db.fault(call); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", call, err)
	}
	for _, l := range db.sessions {
		l.fresh = nil
	}
	if err := f(); err != nil {
		return err
	}
	for id := range db.sessions {
		active := 0
		for _, r := range db.of(id) {
			if r.Status == core.RunRunning || r.Status == core.RunWaiting {
				active++
			}
		}
		if active > 1 {
			db.broken = append(db.broken, fmt.Sprintf("%s: session %s has %d active runs", call, id, active))
		}
	}
	if db.after != nil {
		return db.after(call)
	}
	return nil
}

// of returns the runs of a session in queue order.
func (db *DB) of(id core.SessionID) []*core.Run {
	var out []*core.Run
	for _, r := range db.runs {
		if r.SessionID == id {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *core.Run) int { return int(a.QueueSeq - b.QueueSeq) })
	return out
}

// visible returns the session if it is in the scope.
func (db *DB) visible(scope core.Scope, id core.SessionID) (*log, error) {
	l := db.sessions[id]
	if l == nil || l.session.Owner != scope.Owner || scope.User != "" && scope.User != l.session.UserID {
		return nil, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return l, nil
}

// emit numbers an event and writes it.
func (l *log) emit(e core.Event) {
	l.session.LastEventSeq++
	e.SessionID, e.Seq = l.session.ID, l.session.LastEventSeq
	l.events = append(l.events, e)
	l.fresh = append(l.fresh, e)
}

// Say puts finished messages into the log of a session, as earlier turns would have.
func (db *DB) Say(id core.SessionID, messages ...core.Message) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, m := range messages {
		m.ID, m.SessionID, m.Owner, m.OnPath = core.NewID[core.MessageID](), id, "ann", true
		db.sessions[id].add(m)
	}
}

// add appends a message, unless it is there, and returns it as stored.
func (l *log) add(m core.Message) core.Message {
	for _, have := range l.messages {
		if have.ID == m.ID {
			return have
		}
	}
	l.session.LastSeq++
	l.session.MessageCount++
	m.Seq = l.session.LastSeq
	if n := len(l.messages); n > 0 {
		m.ParentID = l.messages[n-1].ID
	}
	l.messages = append(l.messages, m)
	l.emit(core.NewEvent(l.session.ID, m.RunID, core.EventMessageCreated, core.MessageData{Message: m}))
	return m
}

// Data reads the data of an event into T.
func Data[T any](e core.Event) T {
	var v T
	if err := json.Unmarshal(e.Data, &v); err != nil {
		panic(err)
	}
	return v
}
