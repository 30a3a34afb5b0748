package nodes

import (
	"sync"

	"bobbin/app/core"
)

// Bounds of the tail cache, in bytes. A tail with more texts comes from storage, which leaves out
// those of old messages; without them it is kept, so that a long log is not loaded for each run.
const (
	maxTailTexts = 2 << 20 // storage returns less, and the messages of the next runs are added
	maxTail      = 8 << 20
	maxTails     = 32 << 20 // of all; beyond it the cache is cleared
)

// messageOverhead is about what a message takes in memory besides its texts, in bytes.
const messageOverhead = 1 << 10

// TailCache has the messages after the summaries of the sessions that this process served last, so
// that the next run need not load them. An entry is used only if nothing has happened in the session
// since: every change of messages, by whichever process, has an event, and events are numbered. The run
// that takes an entry owns it, and appends to it. Safe for concurrent use; a nil TailCache has nothing.
type TailCache struct {
	mu    sync.Mutex
	tails map[core.SessionID]tail // guarded by mu
	bytes int                     // of all; guarded by mu
}

// tail is the end of a conversation after a run.
type tail struct {
	event    int64          // the session's last one
	cursor   core.MessageID // the message after which the tail begins; empty = the conversation's first
	messages []core.Message
	pinned   []core.Message   // before them
	work     core.SummaryWork // as last loaded
	bytes    int
}

// NewTailCache returns an empty cache.
func NewTailCache() *TailCache {
	return &TailCache{tails: map[core.SessionID]tail{}}
}

// takeTail removes and returns the end of the conversation, with the run's message; false = it has to be loaded.
func (c *TailCache) takeTail(s AgentState) (tail, bool) {
	if c == nil || s.UserMessage.Seq == 0 {
		return tail{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.tails[s.Run.SessionID]
	if !ok {
		return tail{}, false
	}
	delete(c.tails, s.Run.SessionID)
	c.bytes -= t.bytes
	last := t.messages[len(t.messages)-1]
	if t.event != s.Run.FirstEvent-1 || t.cursor != summaryCursor(s.Session) || s.Run.Attempt != 1 || s.UserMessage.ParentID != last.ID || s.UserMessage.Seq != last.Seq+1 {
		return tail{}, false
	}
	t.messages = append(t.messages, s.UserMessage)
	return t, true
}

// storeTail stores the end of the conversation after a run that has ended with the event.
func (c *TailCache) storeTail(s AgentState, event int64) {
	if c == nil || s.Session.Temporary {
		return
	}
	t := tail{event: event, cursor: summaryCursor(s.Session), messages: append(append(s.History, s.UserMessage), s.RunMessages...), pinned: s.Pinned, work: s.Work}
	texts := 0
	for _, m := range t.messages {
		if m.Seq == 0 {
			return
		}
		texts += m.TextBytes() - m.Unloaded
	}
	if t.bytes = texts + messageOverhead*len(t.messages); texts > maxTailTexts || t.bytes > maxTail {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += t.bytes - c.tails[s.Run.SessionID].bytes; c.bytes > maxTails {
		clear(c.tails)
		c.bytes = t.bytes
	}
	c.tails[s.Run.SessionID] = t
}

// summaryCursor returns the last message that the session's summary covers; empty = there is none.
func summaryCursor(s core.Session) core.MessageID {
	if s.SummaryThroughID == nil {
		return ""
	}
	return *s.SummaryThroughID
}
