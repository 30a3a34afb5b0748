package events

import (
	"maps"
	"sync"
	"time"

	"bobbin/app/core"
)

// Bounds of the memory for partial texts.
const (
	maxIdleTexts = 1024        // drafts; beyond that idle ones are dropped
	idleText     = time.Minute // without a delta: another process may own its run
	maxTextSize  = 4 << 20     // bytes of one text
)

// liveTexts keeps the partial texts of the messages that this process writes. At most one run
// of a session writes.
type liveTexts struct {
	mu     sync.Mutex
	drafts map[core.SessionID]*draft // guarded by mu
	// node.started of the nodes that run in this process; guarded by mu
	nodes map[core.SessionID]core.Event
}

// draft is the partial message of one session.
type draft struct {
	run     core.RunID
	message core.MessageID
	parent  core.MessageID
	attempt int
	parts   map[core.EventType]*part
	last    time.Time // when a delta came
}

// part is one text of a draft.
type part struct {
	content []byte
	broken  bool // a piece is missing or the text is too long: it has no snapshot
}

func newLiveTexts() *liveTexts {
	return &liveTexts{drafts: map[core.SessionID]*draft{}, nodes: map[core.SessionID]core.Event{}}
}

// appendDelta appends the delta, and reports false if it belongs to a lost attempt.
func (t *liveTexts) appendDelta(e core.Event, d core.DeltaData) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.drafts[e.SessionID]
	if now != nil && now.run == e.RunID && d.Attempt < now.attempt {
		return false
	}
	if now == nil || now.message != d.MessageID {
		t.forgetIdle()
		now = &draft{run: e.RunID, message: d.MessageID, parent: d.ParentID, attempt: d.Attempt, parts: map[core.EventType]*part{}}
		t.drafts[e.SessionID] = now
	}
	now.last = time.Now()
	p := now.parts[e.Type]
	if p == nil {
		p = &part{}
		now.parts[e.Type] = p
	}
	p.appendDelta(d)
	return true
}

// appendDelta applies the delta at its offset.
func (p *part) appendDelta(d core.DeltaData) {
	if p.broken || d.Offset < 0 || d.Offset > len(p.content) || d.Offset+len(d.Text) > maxTextSize {
		p.broken, p.content = true, nil
		return
	}
	p.content = append(p.content[:d.Offset], d.Text...)
}

// forgetIdle bounds the number of drafts by that of the messages being written: a run that was
// lost to another process leaves its draft behind. The caller holds t.mu.
func (t *liveTexts) forgetIdle() {
	if len(t.drafts) < maxIdleTexts {
		return
	}
	maps.DeleteFunc(t.drafts, func(_ core.SessionID, d *draft) bool { return time.Since(d.last) > idleText })
}

// setNode sets the node that a run of the session executes, and clears it when the node ends.
func (t *liveTexts) setNode(e core.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Type == core.EventNodeStarted {
		t.nodes[e.SessionID] = e
	} else if t.nodes[e.SessionID].RunID == e.RunID {
		delete(t.nodes, e.SessionID)
	}
}

// nodeOf returns the node.started of the node that runs here; false if none does.
func (t *liveTexts) nodeOf(session core.SessionID) (core.Event, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.nodes[session]
	return e, ok
}

// dropFinished removes the draft that the event completes or makes obsolete.
func (t *liveTexts) dropFinished(e core.Event) {
	message, over := e.FinishedMessage(), e.Type.EndsRun()
	if message == "" && !over {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.drafts[e.SessionID]
	if d != nil && (d.message == message || over && d.run == e.RunID) {
		delete(t.drafts, e.SessionID)
	}
}

// hasAttempt reports whether this process writes text of this attempt.
func (t *liveTexts) hasAttempt(run core.Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.drafts[run.SessionID]
	return d != nil && d.run == run.ID && d.attempt == run.Attempt
}

// textsOf returns the partial texts of the session's message, each as one delta, reasoning first.
func (t *liveTexts) textsOf(session core.SessionID) []core.Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.drafts[session]
	if d == nil {
		return nil
	}
	var out []core.Event
	for _, kind := range []core.EventType{core.EventReasoningDelta, core.EventMessageDelta} {
		if p := d.parts[kind]; p != nil && !p.broken {
			out = append(out, core.NewEvent(session, d.run, kind, core.DeltaData{
				MessageID: d.message, ParentID: d.parent, Attempt: d.attempt, Text: string(p.content),
			}))
		}
	}
	return out
}
