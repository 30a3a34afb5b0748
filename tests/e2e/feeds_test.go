package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
)

// crowd is how many read, and what there is to read.
type crowd struct {
	feeds   int // of one session, then one each of as many sessions
	rounds  int // durable events that all feeds of the session get
	deltas  int // of an answer
	talkers int // sessions that answer at the same time
	slow    int // feeds that do not read
	quiet   int // large messages without them; with them there are enough to fill all buffers
	large   int
}

// Every feed gets everything once, in order, and a slow reader harms nobody. What a database
// has to do with it others show: TestFeedEdges.
func TestFeeds(t *testing.T) {
	t.Parallel()
	c := crowd{feeds: 50, rounds: 2, deltas: 20, talkers: 5, slow: 2, quiet: 1, large: 16}
	s := newFeedServer(t, dbtest.SQLiteURL(t), newPacer(t, c), "{}")
	oneSession(t, s, c)
	eachSession(t, s, c)
	slowReaders(t, s, c)
}

// lengthy is how long is waited for what should not take long, on a busy machine.
const lengthy = 5 * time.Minute

// oneSession has all feeds on one session.
func oneSession(t *testing.T, s *feedServer, c crowd) {
	ctx, cancel := context.WithTimeout(t.Context(), lengthy)
	defer cancel()
	id := s.session(ctx, t)
	a := s.audience(ctx, t, repeat(id, c.feeds))
	defer a.leave(t)
	for i := range c.rounds {
		s.rename(ctx, t, id, fmt.Sprint("title ", i))
		a.await(ctx, t, 1, core.EventSessionUpdated)
	}
	s.ask(ctx, t, id)
	a.await(ctx, t, 1, core.EventRunSucceeded)
}

// eachSession has a session for each feed.
func eachSession(t *testing.T, s *feedServer, c crowd) {
	ctx, cancel := context.WithTimeout(t.Context(), lengthy)
	defer cancel()
	ids := make([]core.SessionID, c.feeds)
	inParallel(c.feeds, func(i int) { ids[i] = s.session(ctx, t) })
	a := s.audience(ctx, t, ids)
	defer a.leave(t)
	inParallel(c.feeds, func(i int) { s.rename(ctx, t, ids[i], "renamed") })
	a.await(ctx, t, 1, core.EventSessionUpdated)
	for _, id := range ids[:c.talkers] {
		s.ask(ctx, t, id)
	}
	(&audience{readers: a.readers[:c.talkers]}).await(ctx, t, 1, core.EventRunSucceeded)
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
	write := func(n int) {
		for i := range n {
			s.large(ctx, t, busy)
			s.rename(ctx, t, quiet, fmt.Sprint("title ", i))
		}
		(&audience{readers: others.readers[:c.feeds/50]}).await(ctx, t, n, core.EventMessageCreated)
		(&audience{readers: others.readers[c.feeds/50:]}).await(ctx, t, n, core.EventSessionUpdated)
	}
	write(c.quiet)
	slow := make([]*sleeper, c.slow)
	for i := range slow {
		slow[i] = s.sleeper(t, busy)
	}
	write(c.large)
	s.awaitDropped(ctx, t, c.slow)
	write(2)
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
