package events

import (
	"sync"

	"bobbin/app/core"
)

// Bounds of the memory for messages on their way.
const (
	maxTexts    = 1024    // sessions with a message on its way
	maxTextSize = 4 << 20 // bytes of one text
)

// text is one text on its way: the answer, or the reasoning before it.
type text struct {
	kind    core.EventType // message.delta or reasoning.delta
	run     core.RunID
	message core.MessageID
	attempt int
	content string
}

// texts remembers what was said so far of the messages on their way in this
// process. A session has at most one run that writes.
type texts struct {
	mu     sync.Mutex
	drafts map[core.SessionID]*draft // guarded by mu
}

// draft is the message on its way of one session.
type draft struct {
	run     core.RunID
	message core.MessageID
	attempt int
	parts   map[core.EventType]*part
}

// part is one text of a draft.
type part struct {
	content []byte
	broken  bool // a piece is missing or it is too long: no snapshot of it
}

func newTexts() *texts { return &texts{drafts: map[core.SessionID]*draft{}} }

// add appends the delta, and reports false if it is of a lost attempt.
func (t *texts) add(e core.Event, d core.DeltaData) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.drafts[e.SessionID]
	if now != nil && now.run == e.RunID && d.Attempt < now.attempt {
		return false
	}
	if now == nil || now.message != d.MessageID {
		t.makeRoom()
		now = &draft{run: e.RunID, message: d.MessageID, attempt: d.Attempt, parts: map[core.EventType]*part{}}
		t.drafts[e.SessionID] = now
	}
	p := now.parts[e.Type]
	if p == nil {
		p = &part{}
		now.parts[e.Type] = p
	}
	p.add(d)
	return true
}

// add puts the delta where it belongs.
func (p *part) add(d core.DeltaData) {
	if p.broken || d.Offset < 0 || d.Offset > len(p.content) || d.Offset+len(d.Text) > maxTextSize {
		p.broken, p.content = true, nil
		return
	}
	p.content = append(p.content[:d.Offset], d.Text...)
}

// makeRoom keeps the number of drafts bounded: a run that was lost to another
// process leaves its draft behind. The caller holds t.mu.
func (t *texts) makeRoom() {
	if len(t.drafts) < maxTexts {
		return
	}
	for session := range t.drafts {
		delete(t.drafts, session)
		return
	}
}

// finish forgets what the event makes superfluous.
func (t *texts) finish(e core.Event) {
	message, over := finished(e), endsRun(e.Type)
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

// has reports whether the text of this attempt of the run is on its way here.
func (t *texts) has(run core.Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.drafts[run.SessionID]
	return d != nil && d.run == run.ID && d.attempt == run.Attempt
}

// of returns the texts of the session's message on its way, reasoning first.
func (t *texts) of(session core.SessionID) []text {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.drafts[session]
	if d == nil {
		return nil
	}
	var out []text
	for _, kind := range []core.EventType{core.EventReasoningDelta, core.EventMessageDelta} {
		p := d.parts[kind]
		if p == nil || p.broken {
			continue
		}
		out = append(out, text{
			kind: kind, run: d.run, message: d.message, attempt: d.attempt, content: string(p.content),
		})
	}
	return out
}
