// Package records reads everything that is stored of a session, for tests that break
// things, and checks that it is whole: numbers without gaps, each question once with
// its answer, no tool call without a result, and summaries that go on where the one
// before ends.
package records

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/apptest"
)

// everything is more events than a session has.
const everything = 1_000_000

// Record is everything that is stored of one session of the local owner.
type Record struct {
	Session   core.Session
	Messages  []core.Message // by seq
	Runs      []core.Run     // by queue_seq
	Events    []core.Event   // by number
	Summaries []core.Summary // by version, without those that are prepared
}

// Load reads the session.
func Load(ctx context.Context, g *gorm.DB, id core.SessionID) (r Record, err error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	if r.Session, r.Summaries, err = Summaries(ctx, g, id); err != nil {
		return r, err
	}
	if r.Messages, err = repositories.NewMessages(g).GetMessagesAfter(ctx, tenant, id, ""); err != nil {
		return r, err
	}
	if r.Events, err = repositories.NewEvents(g).After(ctx, id, 0, everything); err != nil {
		return r, err
	}
	r.Runs, err = Pages(func(q core.PageQuery) (core.Page[core.Run], error) {
		return repositories.NewRuns(g).List(ctx, tenant, id, q)
	})
	slices.SortFunc(r.Runs, func(a, b core.Run) int { return cmp.Compare(a.QueueSeq, b.QueueSeq) })
	return r, err
}

// Summaries reads the session and its summaries that were in use, by version. One that
// is prepared is in no prompt yet.
func Summaries(ctx context.Context, g *gorm.DB, id core.SessionID) (core.Session, []core.Summary, error) {
	tenant := core.Tenant{Owner: core.LocalOwner}
	session, err := repositories.NewSessions(g).Get(ctx, tenant, id)
	if err != nil {
		return session, nil, err
	}
	versions, err := Pages(func(q core.PageQuery) (core.Page[core.Summary], error) {
		return repositories.NewSummaries(g).List(ctx, tenant, id, q)
	})
	slices.Reverse(versions)
	versions = slices.DeleteFunc(versions, func(s core.Summary) bool { return s.State == core.SummaryPrepared })
	return session, versions, err
}

// Pages reads all pages of a list.
func Pages[T any](list func(core.PageQuery) (core.Page[T], error)) (all []T, err error) {
	q := core.PageQuery{Limit: 100}
	for {
		page, err := list(q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all, nil
		}
		q.Cursor = *page.NextCursor
	}
}

// Decoded returns the data of an event; of another type they are empty.
func Decoded[T any](e core.Event) T {
	data, _ := e.Data.(T) // the checks see that it is empty
	return data
}

// Compose returns a message: its mark, and words. One in four wants a tool.
func Compose(mark string, r *rand.Rand) string {
	words := []string{
		"river", "stone", "lantern", "copper", "winter", "paper", "orchard", "signal", "harbor", "velvet", "number",
		"question", "window", "ladder", "summer", "bridge", "engine", "garden", "letter", "mountain", "Übergröße", "日本語", "naïve",
	}
	text := []string{mark}
	if r.IntN(4) == 0 {
		text = append(text, "tool")
	}
	length := 20 + r.IntN(400)
	if r.IntN(40) == 0 {
		length = 1500
	}
	for range length {
		text = append(text, words[r.IntN(len(words))])
	}
	return strings.Join(text, " ")
}

// Approvals checks that each question was asked once and closed once, and that the tool
// call has the result that goes with that: none that was not approved has one of the tool.
func (c *Check) Approvals() {
	asked, closed := map[core.ApprovalID]int{}, map[core.ApprovalID]core.Approval{}
	for _, e := range c.Events {
		a := Decoded[core.ApprovalData](e).Approval
		switch e.Type {
		case core.EventApprovalRequested:
			asked[a.ID]++
		case core.EventApprovalDecided:
			if _, twice := closed[a.ID]; twice || asked[a.ID] != 1 {
				c.Errorf("question %s was asked %d times, and closed again (%v)", a.ID, asked[a.ID], twice)
			}
			closed[a.ID] = a
		}
	}
	results := map[core.RunID]map[string]string{}
	for _, m := range c.Messages {
		if m.Role == core.RoleTool {
			if results[m.RunID] == nil {
				results[m.RunID] = map[string]string{}
			}
			results[m.RunID][m.ToolCallID] = m.Content
		}
	}
	for id := range asked {
		a, done := closed[id]
		result, there := results[a.RunID][a.ToolCallID]
		refused := strings.HasPrefix(result, "not approved")
		if !done || !there || refused == (a.Status == core.ApprovalApproved) {
			c.Errorf("question %s is %q, and the result of its call is %q (%v)", id, a.Status, result, there)
		}
		c.Found.Asked++
	}
}

// Send sends a message by one of three surfaces and returns its run; errorf is told of a wrong answer.
func Send(ctx context.Context, c *client.Client, m core.SendMessage, surface int, errorf func(format string, args ...any)) (run core.RunID, err error) {
	switch surface {
	case 0:
		run, err := apptest.SendAsync(ctx, c, m)
		return run.ID, err
	case 1:
		a, err := apptest.SendAndWait(ctx, c, m)
		if err == nil && a.Run.Status == core.RunSucceeded && (a.Message == nil || !IsAnswer(a.Message.Content, m.Content)) {
			errorf("message %s got the wrong answer: %+v", m.ClientMessageID, a.Message)
		}
		return a.Run.ID, err
	default:
		for e, err := range apptest.Send(ctx, c, m) {
			if err != nil {
				return run, err
			}
			run = e.RunID
		}
		return run, nil
	}
}

// Quantiles returns the median and the longest.
func Quantiles(times []time.Duration) (p50, most time.Duration) {
	if len(times) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2].Round(time.Millisecond), sorted[len(sorted)-1].Round(time.Millisecond)
}

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
// whole. One that is prepared is not among them.
func (c *Check) Versions() {
	var used []core.Summary
	for i, sum := range c.Summaries {
		if sum.Version != i+1 || sum.Content == "" {
			c.Errorf("summary %d has version %d, and %d bytes", i+1, sum.Version, len(sum.Content))
		}
		if sum.ActivatedAt != nil {
			used = append(used, sum)
		} else if sum.State != core.SummaryDropped {
			c.Errorf("summary %d was never used and is %s", sum.Version, sum.State)
		}
	}
	var through int64
	for i, sum := range used {
		if newest := i == len(used)-1; (sum.State == core.SummaryActive) != newest || sum.ThroughSeq <= through {
			c.Errorf("summary %d is %s, and goes from %d to %d", sum.Version, sum.State, through, sum.ThroughSeq)
		}
		through = sum.ThroughSeq
	}
	c.inUse(used)
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
