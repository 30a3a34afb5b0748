package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// crowd is how many read, and what there is to read.
type crowd struct {
	feeds   int           // of one session, then one each of as many sessions
	rounds  int           // durable events that all feeds of the session get
	deltas  int           // of an answer
	pace    time.Duration // between two deltas; 0 = as fast as they are taken
	talkers int           // sessions that answer at the same time
	slow    int           // feeds that do not read
	quiet   int           // large messages without them; with them there are enough to fill all buffers
	large   int
}

// few is for every day; many is what BOBBIN_TEST_LONG shows.
var (
	few  = crowd{feeds: 50, rounds: 2, deltas: 20, talkers: 5, slow: 2, quiet: 1, large: 16}
	many = crowd{feeds: 5000, rounds: 20, deltas: 40, pace: 50 * time.Millisecond, talkers: 100, slow: 50, quiet: 40, large: 40}
)

// 5,000 open feeds on one process, what they take and how late they
// are, and that a slow reader harms nobody. Here there are a hundred in this process, and
// every one of them has to get everything once, in order; with BOBBIN_TEST_LONG=1 there
// are 5,000 on a process of its own, and the figures are printed.
func TestShowFeeds(t *testing.T) {
	t.Parallel()
	c := few
	if apptest.IsLong() {
		c = many
	}
	if !apptest.IsLong() { // what a database has to do with it others show: TestFeedEdges
		showFeeds(t, dbtest.SQLiteURL(t), c)
		return
	}
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		alone.Lock()
		defer alone.Unlock()
		showFeeds(t, url, c)
	})
}

// showFeeds measures with one database.
func showFeeds(t *testing.T, url string, c crowd) {
	s := newFeedServer(t, url, newPacer(t, c), manyFeeds)
	report := apptest.NewTable("%d feeds on one process, %s", c.feeds, dialectOf(url))
	report.AddRow("", "feeds", "events", "p50", "p99", "max", "RSS of the server", "a feed", "heap", "stacks")
	base := s.memory(t)
	report.AddRow("nobody reads", 0, "", "", "", "", base.rss, "", base.heap, base.stacks)
	oneSession(t, s, c, report, base)
	eachSession(t, s, c, report, base)
	report.Log(t)
	slowReaders(t, s, c)
}

// lengthy is how long is waited for what should not take long, on a busy machine.
const lengthy = 5 * time.Minute

func dialectOf(url string) string {
	name, _, _ := strings.Cut(url, ":")
	return name
}

// oneSession has all feeds on one session.
func oneSession(t *testing.T, s *feedServer, c crowd, report *apptest.Table, base memory) {
	ctx, cancel := context.WithTimeout(t.Context(), lengthy)
	defer cancel()
	id := s.session(ctx, t)
	a := s.audience(ctx, t, repeat(id, c.feeds))
	defer a.leave(t)
	m := s.memory(t)
	for i := range c.rounds {
		s.rename(ctx, t, id, fmt.Sprint("title ", i))
		a.await(ctx, t, 1, core.EventSessionUpdated)
	}
	lateness(report, "one session, a change at a time", a, base, m)
	s.ask(ctx, t, id)
	a.await(ctx, t, 1, core.EventRunSucceeded)
	lateness(report, fmt.Sprintf("one session, an answer, a piece every %s", c.pace), a, base, s.memory(t))
}

// eachSession has a session for each feed.
func eachSession(t *testing.T, s *feedServer, c crowd, report *apptest.Table, base memory) {
	ctx, cancel := context.WithTimeout(t.Context(), lengthy)
	defer cancel()
	ids := make([]core.SessionID, c.feeds)
	inParallel(c.feeds, func(i int) { ids[i] = s.session(ctx, t) })
	a := s.audience(ctx, t, ids)
	defer a.leave(t)
	m := s.memory(t)
	inParallel(c.feeds, func(i int) { s.rename(ctx, t, ids[i], "renamed") })
	a.await(ctx, t, 1, core.EventSessionUpdated)
	lateness(report, "a session each, changes one after the other", a, base, m)
	for _, id := range ids[:c.talkers] {
		s.ask(ctx, t, id)
	}
	(&audience{readers: a.readers[:c.talkers]}).await(ctx, t, 1, core.EventRunSucceeded)
	lateness(report, fmt.Sprintf("a session each, %d answers at once", c.talkers), a, base, s.memory(t))
}

// lateness adds a line: how late the events were since the last line.
func lateness(report *apptest.Table, what string, a *audience, base, m memory) {
	all := a.late()
	report.AddRow(what, len(a.readers), len(all), rank(all, 50), rank(all, 99), rank(all, 100),
		m.rss, (m.rss-base.rss)/bytesOf(len(a.readers)), m.heap, m.stacks)
}

func repeat(id core.SessionID, n int) []core.SessionID {
	ids := make([]core.SessionID, n)
	for i := range ids {
		ids[i] = id
	}
	return ids
}

// inParallel calls do for 0 … n-1 in four goroutines.
func inParallel(n int, do func(i int)) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 4 {
		group.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

// Slow readers of a session with large messages: the others get everything as if they
// were not there, they are dropped, and come back without a gap.
func slowReaders(t *testing.T, s *feedServer, c crowd) {
	ctx, cancel := context.WithTimeout(t.Context(), lengthy)
	defer cancel()
	busy, quiet := s.session(ctx, t), s.session(ctx, t)
	others := s.audience(ctx, t, append(repeat(busy, c.feeds/50), repeat(quiet, c.feeds/5)...))
	defer others.leave(t)
	report := apptest.NewTable("%d slow readers beside %d others", c.slow, len(others.readers))
	report.AddRow("", "events", "p50", "p99", "max", "RSS of the server", "dropped")
	base := s.memory(t)
	report.AddRow("before", "", "", "", "", base.rss, s.dropped(t))
	write := func(n int) {
		for i := range n {
			s.large(ctx, t, busy)
			s.rename(ctx, t, quiet, fmt.Sprint("title ", i))
		}
		(&audience{readers: others.readers[:c.feeds/50]}).await(ctx, t, n, core.EventMessageCreated)
		(&audience{readers: others.readers[c.feeds/50:]}).await(ctx, t, n, core.EventSessionUpdated)
	}
	row := func(what string) {
		all := others.late()
		report.AddRow(what, len(all), rank(all, 50), rank(all, 99), rank(all, 100), s.memory(t).rss, s.dropped(t))
	}
	write(c.quiet)
	row("without slow readers")
	slow := make([]*sleeper, c.slow)
	for i := range slow {
		slow[i] = s.sleeper(t, busy)
	}
	write(c.large)
	row("with slow readers")
	s.awaitDropped(ctx, t, c.slow)
	write(2)
	row("after they were dropped")
	report.Log(t)
	for _, r := range slow {
		r.comeBack(ctx, t, s, busy)
	}
}

// session makes a session.
func (s *feedServer) session(ctx context.Context, t *testing.T) core.SessionID {
	t.Helper()
	session, err := s.client.CreateSession(ctx, core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	return session.ID
}

// rename makes an event session.updated.
func (s *feedServer) rename(ctx context.Context, t *testing.T, id core.SessionID, title string) {
	t.Helper()
	if _, err := s.client.UpdateSession(ctx, id, core.SessionPatch{Title: &title}); err != nil {
		t.Error(err)
	}
}

// ask begins a run.
func (s *feedServer) ask(ctx context.Context, t *testing.T, id core.SessionID) {
	t.Helper()
	if _, err := s.client.SendAsync(ctx, core.SendMessage{SessionID: id, Content: "talk"}); err != nil {
		t.Error(err)
	}
}

// large adds a large message.
func (s *feedServer) large(ctx context.Context, t *testing.T, id core.SessionID) {
	t.Helper()
	m := core.Message{Role: core.RoleUser, Content: strings.Repeat("A line of text that takes its place. ", 14_000)}
	if _, err := s.client.AppendMessage(ctx, id, m); err != nil {
		t.Error(err)
	}
}
