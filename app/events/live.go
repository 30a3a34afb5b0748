package events

import (
	"maps"
	"sync"

	"bobbin/app/core"
)

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

// dropText drops the texts of the message.
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
