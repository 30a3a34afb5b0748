package crash_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// findings are what the checks counted.
type findings struct {
	accepted, answered, canceled, failed, doubled, lost int
	resumed, attempts                                   int
	messages, results, events, dropped                  int
	summaries, asked, fallbacks                         int
	inspections, inspected, old, renewed                int
}

// record is everything that is stored of one session.
type record struct {
	session   core.Session
	messages  []core.Message // by seq
	runs      []core.Run     // by queue_seq
	events    []core.Event   // by number
	summaries []core.Summary // by version
}

// verify checks every session, and that a next turn works in it.
func (c *chaos) verify() {
	for n, id := range c.sessions {
		r := c.load(id)
		v := &verifier{t: c.t, name: fmt.Sprintf("session %d (%s)", n, id), record: r, found: &c.found}
		v.interrupted = n == interruptSession
		v.checkNumbers()
		v.checkOrder()
		v.checkRuns()
		c.checkSent(v)
		v.checkVersions()
		c.checkKept(v)
		c.checkSummary(v)
		c.checkContext(v)
		c.nextTurn(v)
	}
}

// load reads the session from the database.
func (c *chaos) load(id core.SessionID) record {
	t, ctx, g, scope := c.t, c.t.Context(), c.database.Gorm, core.Scope{Owner: core.LocalOwner}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var r record
	var err error
	r.session, r.summaries = c.summaries(g, id)
	r.messages, err = repositories.NewMessages(g).GetMessagesAfter(ctx, scope, id, "")
	must(err)
	r.events, err = repositories.NewEvents(g).After(ctx, id, 0, 1_000_000)
	must(err)
	r.runs = pages(t, func(q core.PageQuery) (core.Page[core.Run], error) {
		return repositories.NewRuns(g).List(ctx, scope, id, q)
	})
	slices.SortFunc(r.runs, func(a, b core.Run) int { return cmp.Compare(a.QueueSeq, b.QueueSeq) })
	return r
}

// pages reads all pages of a list.
func pages[T any](t *testing.T, list func(core.PageQuery) (core.Page[T], error)) (all []T) {
	t.Helper()
	q := core.PageQuery{Limit: 100}
	for {
		page, err := list(q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		q.Cursor = *page.NextCursor
	}
}

// verifier checks one session.
type verifier struct {
	t           *testing.T
	name        string
	interrupted bool // its messages cancel each other's runs
	record
	found *findings
}

func (v *verifier) errorf(format string, args ...any) {
	v.t.Helper()
	v.t.Errorf(v.name+": "+format, args...)
}

// checkNumbers: seq, event_seq and queue_seq have no gaps, and the session knows
// the last ones.
func (v *verifier) checkNumbers() {
	for i, m := range v.messages {
		if m.Seq != int64(i+1) {
			v.errorf("message %d in order has seq %d", i+1, m.Seq)
		}
	}
	for i, e := range v.events {
		if e.Seq != int64(i+1) {
			v.errorf("event %d in order has number %d", i+1, e.Seq)
		}
	}
	for i, r := range v.runs {
		if r.QueueSeq != int64(i+1) {
			v.errorf("run %d in order has queue_seq %d", i+1, r.QueueSeq)
		}
	}
	s := v.session
	if s.LastSeq != int64(len(v.messages)) || s.MessageCount != len(v.messages) || s.LastEventSeq != int64(len(v.events)) {
		v.errorf("the session counts %d messages, last seq %d, last event %d; there are %d messages and %d events",
			s.MessageCount, s.LastSeq, s.LastEventSeq, len(v.messages), len(v.events))
	}
	v.found.messages += len(v.messages)
	v.found.events += len(v.events)
}

// checkOrder: the order of the log is that of acceptance, and runs do not mix.
// Every message was told of once, in order, and every run begins and ends once.
func (v *verifier) checkOrder() {
	queue := map[core.RunID]int64{}
	for _, r := range v.runs {
		queue[r.ID] = r.QueueSeq
	}
	var last int64
	for _, m := range v.messages {
		now := queue[m.RunID]
		if now < last || m.Role == core.RoleUser && now == last {
			v.errorf("message %d (%s) of run %d comes after one of run %d", m.Seq, m.Role, now, last)
		}
		last = max(now, last)
	}
	var told []core.MessageID
	begun, ended := map[core.RunID]int{}, map[core.RunID]int{}
	for _, e := range v.events {
		switch e.Type {
		case core.EventMessageCreated:
			told = append(told, decoded[core.MessageData](e).Message.ID)
		case core.EventRunStarted:
			begun[e.RunID]++
		case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
			ended[e.RunID]++
		}
	}
	var logged []core.MessageID
	for _, m := range v.messages {
		logged = append(logged, m.ID)
	}
	if !slices.Equal(told, logged) {
		v.errorf("message.created came for %d messages, not in order or not for the %d that are in the log", len(told), len(logged))
	}
	for _, r := range v.runs {
		if begun[r.ID] != 1 || ended[r.ID] != 1 {
			v.errorf("run %d began %d times and ended %d times by its events, want once", r.QueueSeq, begun[r.ID], ended[r.ID])
		}
	}
}

// checkRuns: each run is a question, tool calls with their results, and one answer.
func (v *verifier) checkRuns() {
	own := map[core.RunID][]core.Message{}
	for _, m := range v.messages {
		own[m.RunID] = append(own[m.RunID], m)
		if m.Role == core.RoleTool {
			v.found.results++
		}
	}
	for _, r := range v.runs {
		if r.Attempt > 1 {
			v.found.resumed++
			v.found.attempts = max(v.found.attempts, r.Attempt)
		}
		v.checkRun(r, own[r.ID])
		delete(own, r.ID)
	}
	for run, messages := range own {
		v.errorf("%d messages are of no run (%q)", len(messages), run)
	}
}

// checkRun checks a run's messages.
func (v *verifier) checkRun(r core.Run, own []core.Message) {
	if len(own) == 0 || own[0].Role != core.RoleUser || own[0].ID != r.UserMessageID || own[0].Content != r.Input.Content {
		v.errorf("run %d (%s) does not begin with its question: %d messages", r.QueueSeq, r.Status, len(own))
		v.found.lost++
		return
	}
	var open []string // tool calls without a result, in order
	var answers []core.Message
	for _, m := range own[1:] {
		switch {
		case m.Role == core.RoleTool && len(open) > 0 && m.ToolCallID == open[0]:
			open = open[1:]
		case m.Role == core.RoleAssistant && len(open) == 0 && len(answers) == 0:
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
			if len(m.ToolCalls) == 0 {
				answers = append(answers, m)
			}
		default:
			v.errorf("run %d: message %d (%s) is out of place", r.QueueSeq, m.Seq, m.Role)
			if m.Role == core.RoleUser || m.Role == core.RoleAssistant {
				v.found.doubled++
			}
		}
	}
	if len(open) > 0 {
		v.errorf("run %d: the tool calls %v have no result", r.QueueSeq, open)
	}
	v.checkEnd(r, answers)
}

// checkEnd: a run succeeded with the answer to its own question. A kill alone lets
// none fail, and only an interrupt cancels one.
func (v *verifier) checkEnd(r core.Run, answers []core.Message) {
	switch {
	case r.Status == core.RunCanceled && v.interrupted:
		v.found.canceled++
		return
	case r.Status == core.RunFailed:
		v.found.failed++
		v.errorf("run %d failed in attempt %d: %+v", r.QueueSeq, r.Attempt, r.Error)
		return
	case r.Status != core.RunSucceeded || len(answers) == 0:
		v.errorf("run %d is %s with %d answers, want an answer", r.QueueSeq, r.Status, len(answers))
		v.found.lost++
		return
	}
	a := answers[0]
	if a.ID != r.AnswerID || a.Status != core.MessageComplete || !isAnswer(a.Content, r.Input.Content) {
		v.errorf("run %d: its answer %s is %s, %.60q; the run says %s", r.QueueSeq, a.ID, a.Status, a.Content, r.AnswerID)
	}
	v.found.answered++
}

// checkSent: what was accepted is there once, with the run that its sender was
// told; what is there was sent.
func (c *chaos) checkSent(v *verifier) {
	runs, questions := map[string][]core.Run{}, map[string]int{}
	for _, r := range v.runs {
		runs[r.ClientMessageID] = append(runs[r.ClientMessageID], r)
	}
	for _, m := range v.messages {
		if m.Role == core.RoleUser {
			questions[m.ClientMessageID]++
		}
	}
	for id, s := range c.talk.sent {
		if s.session != v.session.ID || s.run == "" && len(runs[id])+questions[id] == 0 {
			continue
		}
		v.found.accepted++
		if len(runs[id]) != 1 || questions[id] != 1 {
			v.errorf("message %s has %d runs and is %d times in the log, want once", id, len(runs[id]), questions[id])
			v.found.lost += max(1-questions[id], 0)
			v.found.doubled += max(questions[id]-1, 0)
			continue
		}
		if r := runs[id][0]; s.run != "" && r.ID != s.run || r.Input.Content != s.content {
			v.errorf("message %s: its run is %s with %.40q, its sender was told %s for %.40q", id, r.ID, r.Input.Content, s.run, s.content)
		}
	}
	for id := range runs {
		if c.talk.sent[id] == nil {
			v.errorf("nobody sent message %q", id)
		}
	}
}

// checkContext: no message is lost to the prompt.
func (c *chaos) checkContext(v *verifier) {
	report, err := c.talk.client.Context(c.t.Context(), v.session.ID)
	if err != nil {
		v.errorf("context: %v", err)
		return
	}
	if g := report.Coverage; g.Lost != 0 || g.Messages != len(v.messages) || g.Summarized != v.session.SummarizedCount {
		v.errorf("coverage: got %+v, want %d messages, %d of them summarized, none lost", g, len(v.messages), v.session.SummarizedCount)
	}
}

// nextTurn: the session goes on, and its watcher hears of it.
func (c *chaos) nextTurn(v *verifier) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	m := core.SendMessage{SessionID: v.session.ID, Content: "next Is everything there?", ClientMessageID: "next"}
	a, err := c.talk.client.SendAndWait(ctx, m)
	if err != nil || a.Run.Status != core.RunSucceeded || a.Message == nil || !isAnswer(a.Message.Content, m.Content) {
		v.errorf("the next turn: got run %+v, %v, want an answer", a.Run, err)
		return
	}
	last := c.load(v.session.ID).session.LastEventSeq
	for f := c.talk.feeds[v.session.ID]; f.last.Load() < last; {
		if !pause(ctx, 5*time.Millisecond) {
			v.errorf("its watcher has come to event %d of %d", f.last.Load(), last)
			return
		}
	}
}

// verifyFeeds: the watchers, which were there all the time, were told of what is
// in the logs, and of nothing else. They have ended.
func (c *chaos) verifyFeeds() {
	for n, id := range c.sessions {
		f := c.talk.feeds[id]
		c.found.dropped += f.dropped
		r := c.load(id)
		if f.seq != r.session.LastEventSeq || len(f.created) != len(r.messages) {
			c.t.Errorf("session %d: its watcher was told of %d messages and events up to %d, there are %d and %d",
				n, len(f.created), f.seq, len(r.messages), r.session.LastEventSeq)
		}
		for _, m := range r.messages {
			if !f.created[m.ID] {
				c.t.Errorf("session %d: its watcher was not told of message %d", n, m.Seq)
			}
		}
	}
}
