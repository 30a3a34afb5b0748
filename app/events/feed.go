package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// How a Feed reads the store.
const (
	pageSize    = 200
	defaultPoll = 15 * time.Second
	// storeTime bounds one query. A reader in a process that cannot reach the store should reconnect to
	// another one.
	storeTime = 10 * time.Second
)

// Feed publishes the events of sessions and lets readers watch them. Safe for concurrent use.
type Feed struct {
	bus     Bus
	store   core.EventStore
	log     *slog.Logger
	poll    time.Duration
	lookups *batchedLookup
	live    *liveSessions
	runs    core.RunStore // nil = there are no other processes

	memory *quota.Quota // of replayed events; nil = no limit

	observer  core.Observer
	listeners []listener
}

// Observe sets the observer. Call it before the feed is used.
func (f *Feed) Observe(o core.Observer) { f.observer = o }

// Limit sets the quota for the memory of replays. Call it before the feed is used.
func (f *Feed) Limit(memory *quota.Quota) { f.memory = memory }

// New returns a feed over the bus whose durable events are in store. Every watcher checks the
// store every 15 s for events that the bus may have lost.
func New(bus Bus, store core.EventStore, logger *slog.Logger) *Feed {
	return &Feed{bus: bus, store: store, log: logger, poll: defaultPoll, lookups: &batchedLookup{store: store}, live: &liveSessions{sessions: map[core.SessionID]*liveSession{}}, observer: core.NoObserver{}}
}

// Publish publishes durable events to the watchers. Call it after the commit that wrote them;
// the order among callers does not matter. It does not fail: watchers read from the store what
// the bus loses.
func (f *Feed) Publish(ctx context.Context, events []core.Event) {
	for _, e := range events {
		f.live.applyEvent(e)
		f.publishTo(ctx, sessionSubject(e.SessionID), e)
		for _, l := range f.listeners {
			if l.wants(e) {
				core.Signal(l.c)
			}
		}
	}
	for i, e := range events {
		if i == 0 || e.SessionID != events[i-1].SessionID {
			f.PublishHead(ctx, core.Tenant(e.Owner), e.SessionID)
		}
	}
}

// Delta publishes an event that is not stored. A message.delta or reasoning.delta extends the
// partial text of its message, if its attempt has begun (Begin), and a message.discarded removes it.
// The deltas of a message must come from one goroutine in the order of their offsets, and be valid
// UTF-8. A delta of an attempt older than the one that has begun is dropped.
func (f *Feed) Delta(ctx context.Context, e core.Event) {
	e.Seq = 0
	if !e.Type.IsText() {
		f.live.applyEvent(e)
		f.publishTo(ctx, sessionSubject(e.SessionID), e)
		return
	}
	d, ok := e.Data.(core.DeltaData)
	if !ok {
		f.log.ErrorContext(ctx, "delta not readable", "session_id", e.SessionID, "err", fmt.Sprintf("its data are %T", e.Data))
		return
	}
	// Before it is published: a watcher that subscribed too late for the bus must find it
	// here. A watcher that gets it from both removes the overlap.
	if !f.live.appendDelta(e, d) {
		return
	}
	if f.runs != nil && len(d.Text) > pieceSize {
		f.sendText(ctx, sessionSubject(e.SessionID), e)
		return
	}
	f.publishTo(ctx, sessionSubject(e.SessionID), e)
}

func (f *Feed) publishTo(ctx context.Context, subject string, e core.Event) {
	if err := f.bus.PublishEvent(subject, e); err != nil && !errors.Is(err, ErrClosed) {
		f.log.WarnContext(ctx, "event not published", "session_id", e.SessionID, "type", e.Type, "err", err)
	}
}

// listener is a channel that is signaled when a wanted event is published.
type listener struct {
	wants func(core.Event) bool
	c     chan<- struct{}
}

// Notify puts an element into c, unless it is full, whenever this process publishes a durable
// event that is wanted. Events of other processes do not count. Call it before the feed is
// used.
func (f *Feed) Notify(c chan<- struct{}, wants func(core.Event) bool) {
	f.listeners = append(f.listeners, listener{wants: wants, c: c})
}

// Bounds of the memory for live sessions.
const (
	maxLive        = 4096      // sessions; beyond that those go whose run another process executes
	maxActiveBytes = 256 << 10 // of the events of one run
)

// liveSessions are the sessions with a run that this process executes or has just started. They are
// what a watcher cannot read from the store, or need not. Safe for concurrent use.
type liveSessions struct {
	mu       sync.Mutex
	sessions map[core.SessionID]*liveSession // guarded by mu
}

// liveSession is a session from the start of its active run to the run's end.
type liveSession struct {
	run     core.RunID
	attempt int            // that this process executes; 0 = none
	events  []core.Event   // the durable ones since the run started, without a gap; none = some may be missing
	size    int            // of the events, in bytes
	node    core.Event     // node.started of the node that runs
	message core.MessageID // being written; empty = none
	parent  core.MessageID // of the message
	texts   []partialText  // of the message, in the order in which they began
}

// partialText is what has come of a text of a message.
type partialText struct {
	kind core.EventType
	call *core.DeltaCall // whose arguments it is; nil = none
	text []byte
}

// Begin begins an attempt of a run in this process. Its text is kept until End, or the run's end.
func (f *Feed) Begin(run core.Run) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	s := f.live.sessionOf(run.SessionID, run.ID)
	s.attempt, s.node = run.Attempt, core.Event{}
	s.dropText()
}

// End ends the attempt in this process, whoever executes the run from now on.
func (f *Feed) End(run core.Run) {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	if f.live.attemptOf(run) != nil {
		delete(f.live.sessions, run.SessionID)
	}
}

// Draft returns what the attempt has said so far of the message that it is writing; an empty one =
// nothing.
func (f *Feed) Draft(run core.Run) core.Draft {
	f.live.mu.Lock()
	defer f.live.mu.Unlock()
	if s := f.live.attemptOf(run); s != nil && s.message != "" {
		draft := core.Draft{Attempt: s.attempt, MessageID: s.message, ParentID: s.parent}
		if t := s.findText(core.EventMessageDelta, core.DeltaData{}); t != nil {
			draft.Text = string(t.text)
		}
		return draft
	}
	return core.Draft{}
}

// sessionOf returns the session with the run, without anything if another one was active. The caller
// holds l.mu.
func (l *liveSessions) sessionOf(session core.SessionID, run core.RunID) *liveSession {
	if s := l.sessions[session]; s != nil && s.run == run {
		return s
	}
	if len(l.sessions) >= maxLive {
		maps.DeleteFunc(l.sessions, func(_ core.SessionID, s *liveSession) bool { return s.attempt == 0 })
	}
	s := &liveSession{run: run}
	l.sessions[session] = s
	return s
}

// attemptOf returns the session if this process executes this attempt, else nil. The caller holds
// l.mu.
func (l *liveSessions) attemptOf(run core.Run) *liveSession {
	if s := l.sessions[run.SessionID]; s != nil && s.run == run.ID && s.attempt == run.Attempt {
		return s
	}
	return nil
}

// applyEvent applies an event that is no piece of text. Call it before the event is published.
func (l *liveSessions) applyEvent(e core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Seq > 0 && e.Type == core.EventRunStarted {
		s := l.sessionOf(e.SessionID, e.RunID)
		s.events, s.size = []core.Event{e}, e.Size
		return
	}
	s := l.sessions[e.SessionID]
	if s == nil {
		return
	}
	own := e.RunID == s.run
	if n := len(s.events); e.Seq > 0 && n > 0 {
		s.events, s.size = append(s.events, e), s.size+e.Size
		waits := own && e.Type == core.EventRunWaiting // it may go on in another process
		if waits || e.Seq != s.events[n-1].Seq+1 || s.size > maxActiveBytes {
			s.events = nil
		}
	}
	switch {
	case !own:
	case e.Type.EndsRun():
		delete(l.sessions, e.SessionID)
	case e.Type == core.EventNodeStarted:
		s.node = e
	case e.Type == core.EventNodeFinished:
		s.node = core.Event{}
	case s.message != "" && e.FinishedMessage() == s.message:
		s.dropText()
	}
}

func (s *liveSession) dropText() { s.message, s.parent, s.texts = "", "", nil }

// findText returns the text that the delta extends; nil if it has not begun.
func (s *liveSession) findText(kind core.EventType, d core.DeltaData) *partialText {
	for i := range s.texts {
		if t := &s.texts[i]; t.kind == kind && (d.DeltaCall == nil || t.call.ToolCallID == d.ToolCallID) {
			return t
		}
	}
	return nil
}

// appendDelta appends a piece of text at its offset, and reports false if it belongs to a lost
// attempt. A piece that leaves a gap is not kept: the text would be unreadable.
func (l *liveSessions) appendDelta(e core.Event, d core.DeltaData) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[e.SessionID]
	if s == nil || s.run != e.RunID || s.attempt == 0 {
		return true
	}
	if d.Attempt < s.attempt {
		return false
	}
	if d.MessageID != s.message {
		s.dropText()
		s.message, s.parent = d.MessageID, d.ParentID
	}
	t := s.findText(e.Type, d)
	if t == nil {
		s.texts = append(s.texts, partialText{kind: e.Type, call: d.DeltaCall})
		t = &s.texts[len(s.texts)-1]
	}
	if d.Offset >= 0 && d.Offset <= len(t.text) {
		t.text = append(t.text[:d.Offset], d.Text...)
	}
	return true
}

// eventsAfter returns the events of the session after the number; false if some may be missing,
// or the run is not the active one.
func (l *liveSessions) eventsAfter(session core.SessionID, run core.RunID, after int64) ([]core.Event, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[session]
	if s == nil || s.run != run || len(s.events) == 0 {
		return nil, false
	}
	n := after + 1 - s.events[0].Seq
	if n < 0 || n > int64(len(s.events)) {
		return nil, false
	}
	return s.events[n:len(s.events):len(s.events)], true
}

// executes reports whether this process executes this attempt.
func (l *liveSessions) executes(run core.Run) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.attemptOf(run) != nil
}

// snapshot returns the node.started of the node that runs here, and the partial texts of the
// session's message, each as one delta.
func (l *liveSessions) snapshot(session core.SessionID) (out []core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sessions[session]
	if s == nil {
		return nil
	}
	if s.node.Type != "" {
		out = append(out, s.node)
	}
	for _, t := range s.texts {
		if len(t.text) > 0 {
			out = append(out, core.NewEvent(session, s.run, t.kind, core.DeltaData{MessageID: s.message, ParentID: s.parent, Attempt: s.attempt, Text: string(t.text), DeltaCall: t.call}))
		}
	}
	return out
}
