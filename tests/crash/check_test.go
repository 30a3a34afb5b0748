package crash_test

import (
	"context"
	"fmt"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/must"
	"bobbin/tests/records"
)

// findings are what the checks counted.
type findings struct {
	records.Found

	dropped                     int
	summaries, asked, fallbacks int
	inspections, inspected      int
}

// verify checks every session, and that a next turn works in it.
func (c *chaos) verify() {
	for n, id := range c.sessions {
		r := c.load(id)
		v := c.check(fmt.Sprintf("session %d (%s)", n, id), r)
		// A kill alone lets no run fail, and only an interrupt cancels one.
		v.Canceled = n == interruptSession
		v.Whole()
		c.checkIndex(v, id)
		v.Sent(c.talk.sent)
		c.checkKept(v)
		c.checkSummary(v)
		c.checkContext(v)
		c.nextTurn(v)
	}
}

// checkIndex: every message is in the search index; a unique index says that it is there once.
func (c *chaos) checkIndex(v *records.Check, id core.SessionID) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	count := func(query string) (n int) {
		must.Do(c.t, c.database.Gorm.WithContext(ctx).Raw(query, id).Scan(&n).Error)
		return n
	}
	for count("SELECT COUNT(*) FROM sessions WHERE id = ? AND indexed_seq < last_seq AND NOT temporary") > 0 {
		if !pause(ctx, 20*time.Millisecond) {
			v.Errorf("is not indexed %s after the restart", patience)
			return
		}
	}
	if n := count(`SELECT COUNT(*) FROM messages m WHERE m.session_id = ? AND m.deleted_at IS NULL AND m.content <> '' AND m.tool_name <> 'search_history'
		AND NOT EXISTS (SELECT 1 FROM search_entries e WHERE e.message_id = m.id)`); n > 0 {
		v.Errorf("%d messages are not in the search index", n)
	}
}

// check returns the checks of a session.
func (c *chaos) check(name string, r records.Record) *records.Check {
	return &records.Check{Record: r, Found: &c.found.Found, Errorf: func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf(name+": "+format, args...)
	}}
}

// load reads the session from the database.
func (c *chaos) load(id core.SessionID) records.Record {
	c.t.Helper()
	return must.Get(records.Load(c.t.Context(), c.database.Gorm, id))(c.t)
}

// checkContext: no message is lost to the prompt.
func (c *chaos) checkContext(v *records.Check) {
	report, err := client.Call(c.t.Context(), c.talk.client, ops.GetContext, ops.InSession{SessionID: v.Session.ID})
	if err != nil {
		v.Errorf("context: %v", err)
		return
	}
	summarized := v.Session.SummarizedCount
	for _, s := range report.Versions { // made in the background since the session was read, perhaps
		if s.Version == report.SummaryVersion {
			summarized = s.Messages
		}
	}
	if g := report.Coverage; g.Lost != 0 || g.Messages != len(v.Messages) || g.Summarized != summarized {
		v.Errorf("coverage: got %+v, want %d messages, %d of them summarized, none lost", g, len(v.Messages), summarized)
	}
}

// nextTurn: the session goes on, and its watcher hears of it.
func (c *chaos) nextTurn(v *records.Check) {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	m := core.SendMessage{SessionID: v.Session.ID, Content: "next Is everything there?", ClientMessageID: "next"}
	a, err := c.talk.client.SendAndWait(ctx, m)
	if err != nil || a.Run.Status != core.RunSucceeded || a.Message == nil || !records.IsAnswer(a.Message.Content, m.Content) {
		v.Errorf("the next turn: got run %+v, %v, want an answer", a.Run, err)
		return
	}
	last := c.load(v.Session.ID).Session.LastEventSeq
	for f := c.talk.feeds[v.Session.ID]; f.last.Load() < last; {
		if !pause(ctx, 5*time.Millisecond) {
			v.Errorf("its watcher has come to event %d of %d", f.last.Load(), last)
			return
		}
	}
}

// verifyFeeds: the watchers, which were there all the time, were told of what is
// in the logs, and of nothing else. They have ended.
func (c *chaos) verifyFeeds() {
	for _, id := range c.sessions {
		f := c.talk.feeds[id]
		c.found.dropped += f.Dropped
		f.Compare(c.load(id))
	}
}

// checkSummary: who asked for a summary was told what is there.
func (c *chaos) checkSummary(v *records.Check) {
	asked := c.talk.summaries[v.Session.ID]
	c.found.summaries += len(v.Summaries)
	c.found.asked += len(asked)
	for _, told := range asked {
		if told.Version < 1 || told.Version > len(v.Summaries) || v.Summaries[told.Version-1].Content != told.Content {
			v.Errorf("a request was answered with summary %d, which is not there", told.Version)
		}
	}
	for _, sum := range v.Summaries {
		if sum.Note != "" {
			c.found.fallbacks++
		}
	}
}
