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

// Versions checks that each version in use goes on where the one before ends, that the
// newest of them is the active one, and that the session's summary is that version,
// whole. What is prepared goes further.
func (c *Check) Versions() {
	for i, sum := range c.Summaries {
		if sum.Version != i+1 || sum.Content == "" {
			c.Errorf("summary %d has version %d, and %d bytes", i+1, sum.Version, len(sum.Content))
		}
	}
	used, ready := c.used()
	var through int64
	for i, sum := range used {
		if newest := i == len(used)-1; (sum.State == core.SummaryActive) != newest || sum.ThroughSeq <= through {
			c.Errorf("summary %d is %s, and goes from %d to %d", sum.Version, sum.State, through, sum.ThroughSeq)
		}
		through = sum.ThroughSeq
	}
	s := c.Session
	if ready != nil && ready.ThroughSeq <= s.SummaryThroughSeq {
		c.Errorf("summary %d is prepared up to %d, the one in use goes to %d", ready.Version, ready.ThroughSeq, s.SummaryThroughSeq)
	}
	c.inUse(used)
}

// used are the versions that came into use, and ready is the one that is prepared; nil =
// none is.
func (c *Check) used() (used []core.Summary, ready *core.Summary) {
	for _, sum := range c.Summaries {
		switch {
		case sum.ActivatedAt != nil:
			used = append(used, sum)
		case sum.State == core.SummaryPrepared && ready == nil:
			ready = &sum
		case sum.State != core.SummaryDropped:
			c.Errorf("summary %d was never used and is %s", sum.Version, sum.State)
		}
	}
	return used, ready
}

// inUse checks that the session's summary is the newest that came into use.
func (c *Check) inUse(used []core.Summary) {
	s := c.Session
	if len(used) == 0 {
		if s.SummaryVersion != 0 || s.ConversationSummary != nil || s.SummaryThroughID != nil || s.SummarizedCount != 0 {
			c.Errorf("there is no summary, but the session has version %d", s.SummaryVersion)
		}
		return
	}
	last := used[len(used)-1]
	if s.ConversationSummary == nil || s.SummaryThroughID == nil || s.LastSummarizedAt == nil {
		c.Errorf("there is summary %d, but the session has none", last.Version)
		return
	}
	if s.SummaryVersion != last.Version || s.SummaryCount != len(used) || *s.ConversationSummary != last.Content ||
		*s.SummaryThroughID != last.ThroughID || s.SummaryThroughSeq != last.ThroughSeq || s.SummaryTokens != last.TokenCount {
		c.Errorf("the session has summary %d through %d, the newest version is %d through %d, or their texts differ",
			s.SummaryVersion, s.SummaryThroughSeq, last.Version, last.ThroughSeq)
	}
	if n := int(last.ThroughSeq); s.SummarizedCount != n || last.MessagesCovered != n {
		c.Errorf("the summary counts %d messages, its version %d; up to seq %d there are %d", s.SummarizedCount, last.MessagesCovered, last.ThroughSeq, n)
	}
}

// Coverage checks that the newest summary, prepared or in use, covers the beginning of
// the log up to a message that ends a turn.
func (c *Check) Coverage() {
	if len(c.Summaries) == 0 {
		return
	}
	last := c.Summaries[len(c.Summaries)-1]
	if last.ThroughSeq > int64(len(c.Messages)) || c.Messages[last.ThroughSeq-1].ID != last.ThroughID {
		c.Errorf("the message with seq %d is not %s, through which the summary goes", last.ThroughSeq, last.ThroughID)
		return
	}
	if last.ThroughSeq < int64(len(c.Messages)) && c.Messages[last.ThroughSeq].Role == core.RoleTool {
		c.Errorf("the summary ends at seq %d, between a tool call and its result", last.ThroughSeq)
	}
}
