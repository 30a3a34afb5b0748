package records

import (
	"slices"
	"strings"

	"bobbin/app/core"
)

// Feed is what one watcher was told of a session. It checks what can be said of each
// event. Its watcher's goroutine owns it.
type Feed struct {
	errorf func(format string, args ...any)

	Seq     int64                   // of the last durable event
	Types   []core.EventType        // of all durable events
	Created map[core.MessageID]bool // messages that are in the log
	Whole   int                     // messages whose texts on their way were all of them
	Begun   int                     // messages of whose texts a part came
	Dropped int                     // texts that were taken back

	texts map[core.MessageID]string     // on their way, over this connection
	shown map[core.MessageID]core.RunID // texts that are neither in the log nor taken back
	gone  map[core.MessageID]bool       // messages that were taken back
}

// NewFeed returns the feed of a watcher that was told of nothing yet; errorf is called for each fault.
func NewFeed(errorf func(format string, args ...any)) *Feed {
	return &Feed{
		errorf: errorf, texts: map[core.MessageID]string{}, shown: map[core.MessageID]core.RunID{},
		Created: map[core.MessageID]bool{}, gone: map[core.MessageID]bool{},
	}
}

// Connected says that a new connection begins: texts on their way come anew.
func (f *Feed) Connected() { clear(f.texts) }

// Take checks an event.
func (f *Feed) Take(e core.Event) {
	if e.Type == core.EventResync {
		f.errorf("resync after event %d, though all events are kept", f.Seq)
		return
	}
	if e.Seq > 0 {
		if e.Seq != f.Seq+1 {
			f.errorf("event %s has number %d after %d", e.Type, e.Seq, f.Seq)
		}
		f.Seq = max(f.Seq, e.Seq)
		f.Types = append(f.Types, e.Type)
	}
	switch e.Type {
	case core.EventMessageDelta:
		f.delta(e)
	case core.EventMessageDiscarded:
		f.discard(Decoded[core.DiscardedData](e).MessageID)
	case core.EventMessageCreated:
		f.create(Decoded[core.MessageData](e).Message)
	case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		f.ended(e.RunID)
	}
}

func (f *Feed) delta(e core.Event) {
	d := Decoded[core.DeltaData](e)
	have := f.texts[d.MessageID]
	if d.OffsetUTF16 != core.UTF16Len(have) || f.Created[d.MessageID] || f.gone[d.MessageID] {
		f.errorf("text of message %s at offset %d after %d (in the log: %v, taken back: %v)",
			d.MessageID, d.OffsetUTF16, core.UTF16Len(have), f.Created[d.MessageID], f.gone[d.MessageID])
	}
	f.texts[d.MessageID] = have + d.Text
	f.shown[d.MessageID] = e.RunID
}

func (f *Feed) discard(id core.MessageID) {
	if f.Created[id] {
		f.errorf("message %s is in the log and was taken back", id)
	}
	f.gone[id] = true
	if _, shown := f.shown[id]; shown {
		f.Dropped++
	}
	delete(f.texts, id)
	delete(f.shown, id)
}

// create checks a message that is in the log now: what was shown of it is its beginning.
func (f *Feed) create(m core.Message) {
	text := f.texts[m.ID]
	// What a canceled run has said is kept as far as it was saved before a kill.
	fits := strings.HasPrefix(m.Content, text) || m.Status == core.MessagePartial && strings.HasPrefix(text, m.Content)
	if f.Created[m.ID] || f.gone[m.ID] || !fits {
		f.errorf("message %s (%.40q) was created again (%v), after it was taken back (%v), or is not what was shown of it: %.40q",
			m.ID, m.Content, f.Created[m.ID], f.gone[m.ID], text)
	}
	f.Created[m.ID] = true
	if text != "" && text == m.Content {
		f.Whole++
	} else if text != "" {
		f.Begun++
	}
	delete(f.texts, m.ID)
	delete(f.shown, m.ID)
}

// ended checks that no text of a run that has ended is left standing.
func (f *Feed) ended(run core.RunID) {
	for id, of := range f.shown {
		if of == run {
			f.errorf("text of message %s of run %s was shown, and is neither in the log nor taken back", id, run)
			delete(f.shown, id)
			delete(f.texts, id)
		}
	}
}

// Compare checks that the watcher was told what is stored, and nothing else.
func (f *Feed) Compare(r Record) {
	var stored []core.EventType
	for _, e := range r.Events {
		stored = append(stored, e.Type)
	}
	if !slices.Equal(f.Types, stored) {
		f.errorf("it was told of %d events, there are %d, or they are others", len(f.Types), len(stored))
	}
	for _, m := range r.Messages {
		if !f.Created[m.ID] {
			f.errorf("it was not told of message %d", m.Seq)
		}
	}
	if len(f.Created) != len(r.Messages) {
		f.errorf("it was told of %d messages, there are %d", len(f.Created), len(r.Messages))
	}
}
