package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/apptest"
)

// feeds returns the house as a server of feeds.
func feedsOf(h *apptest.Bobbin) *feedServer {
	return &feedServer{url: h.URL, client: h.Client, http: http.DefaultClient}
}

// frameOf reads the next frame with an id: its id and its event, empty for the opening.
func frameOf(t *testing.T, r *bufio.Reader) (id, event string) {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			id = value
		case name == "event":
			event = value
		case line == "\n" && id != "":
			return id, event
		}
	}
}

// Over two replicas, from every number that a
// reader can have, and from some that it cannot have, nothing is missing and nothing
// comes twice.
func TestFeedEdges(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, _ := newHolding(t)
	first, second := newReplicas(t, p)
	a, b := feedsOf(first), feedsOf(second)
	id := a.session(ctx, t)
	apptest.SendMessage(t, first.Client, core.SendMessage{SessionID: id, Content: "one"})
	apptest.SendMessage(t, second.Client, core.SendMessage{SessionID: id, Content: "two"})
	newest, err := b.newest(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("from every number", func(t *testing.T) { fromEach(ctx, t, []*feedServer{a, b}, id, newest) })
	t.Run("what is no number", func(t *testing.T) { noNumbers(ctx, t, b, id) })
	t.Run("numbers of another database", func(t *testing.T) { resynced(ctx, t, a, b, id) })
	t.Run("lost before the first event", func(t *testing.T) { lostAtOnce(ctx, t, a, b, id) })
	t.Run("opened while something is committed", func(t *testing.T) { amidCommits(ctx, t, a, b, id) })
}

// fromEach reads from each number to the newest, at each replica.
func fromEach(ctx context.Context, t *testing.T, servers []*feedServer, id core.SessionID, newest int64) {
	for i := range newest {
		s := servers[i%2]
		answer, err := s.open(ctx, id, strconv.FormatInt(i, 10))
		if err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(answer.Body)
		for want := i; want <= newest; want++ { // the opening repeats the reader's own
			if got, _ := frameOf(t, r); got != strconv.FormatInt(want, 10) {
				t.Errorf("after %d: got event %s, want %d", i, got, want)
			}
		}
		_ = answer.Body.Close()
	}
}

// noNumbers are refused before a stream begins.
func noNumbers(ctx context.Context, t *testing.T, s *feedServer, id core.SessionID) {
	for _, after := range []string{"abc", "-1", "1.5", "99999999999999999999", "0x10", "1,2"} {
		answer, err := s.open(ctx, id, after)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("got %s for Last-Event-ID %q, want 422", answer.Status, after)
		}
	}
}

// resynced: who has a number that the session has not reached is told, gets one that it
// has, and misses nothing from there on, though the old number is reached meanwhile.
func resynced(ctx context.Context, t *testing.T, a, b *feedServer, id core.SessionID) {
	newest, err := a.newest(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.open(ctx, id, strconv.FormatInt(newest+3, 10))
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(answer.Body)
	frameOf(t, r) // the opening
	number, event := frameOf(t, r)
	_ = answer.Body.Close()
	if event != "resync" || number != strconv.FormatInt(newest, 10) {
		t.Fatalf("got %s %s for a number of the future, want resync %d", event, number, newest)
	}
	for i := range 6 {
		a.rename(ctx, t, id, fmt.Sprint("meanwhile ", i))
	}
	fromEach(ctx, t, []*feedServer{b, a}, id, newest+6)
	if again, err := b.open(ctx, id, number); err != nil {
		t.Fatal(err)
	} else if got, _ := frameOf(t, bufio.NewReader(again.Body)); got != number {
		t.Errorf("the feed goes on after %s, want %s", got, number)
	} else {
		_ = again.Body.Close()
	}
}

// lostAtOnce: a browser whose connection breaks before there was an event has a number
// all the same, from the opening, and comes back with it to another replica.
func lostAtOnce(ctx context.Context, t *testing.T, a, b *feedServer, id core.SessionID) {
	answer, err := a.open(ctx, id, "")
	if err != nil {
		t.Fatal(err)
	}
	number, event := frameOf(t, bufio.NewReader(answer.Body))
	_ = answer.Body.Close()
	if event != "" || number != answer.Header.Get("Last-Event-ID") {
		t.Fatalf("got %q %s at the beginning, want a number without an event", event, number)
	}
	a.rename(ctx, t, id, "while nobody looks")
	again, err := b.open(ctx, id, number)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	r := bufio.NewReader(again.Body)
	frameOf(t, r)
	if got, event := frameOf(t, r); event != string(core.EventSessionUpdated) || got == number {
		t.Errorf("got %s %s, want what happened meanwhile", event, got)
	}
}

// amidCommits opens feeds at both while both write: each reader gets every event from its
// beginning on.
func amidCommits(ctx context.Context, t *testing.T, a, b *feedServer, id core.SessionID) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	const last = "the last one"
	var writers, readers, opened sync.WaitGroup
	for _, s := range []*feedServer{a, b} {
		writers.Go(func() {
			for i := range 15 {
				s.rename(ctx, t, id, fmt.Sprint("title ", i))
			}
		})
		for range 15 {
			opened.Add(1)
			readers.Go(func() {
				answer, err := s.open(ctx, id, "")
				opened.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer answer.Body.Close()
				r, err := newFeedReader(answer)
				if err != nil {
					t.Error(err)
					return
				}
				r.until = last
				if err := r.read(); !errors.Is(err, errSeen) {
					t.Errorf("got %v, want every event up to the last", err)
				}
			})
		}
	}
	writers.Wait()
	opened.Wait()
	a.rename(ctx, t, id, last)
	readers.Wait()
}
