package compaction_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
)

// Pins count in the floor, and are refused where they would leave no
// room to land.
func TestCheckPin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 100)
	small := w.said(core.RoleUser, "remember this")
	large := w.said(core.RoleUser, "remember this")
	large.TokenCount = 4000
	check := func(m core.Message) error { return w.control().CheckPin(t.Context(), w.scope(), w.Session.ID, m) }
	if err := check(small); err != nil {
		t.Errorf("a small one: got %v, want no error", err)
	}
	err := check(large)
	if !errors.Is(err, core.ErrContextFloor) || !strings.Contains(err.Error(), "unpin another message") {
		t.Errorf("a large one: got %v, want ErrContextFloor and what to do", err)
	}
	// Many small ones are refused in the end, too.
	pinned := 0
	for check(medium(w)) == nil && pinned < 100 {
		m := medium(w)
		m.Pinned = true
		w.add(m)
		pinned++
	}
	if pinned == 0 || pinned == 100 {
		t.Errorf("got %d pins accepted, want some", pinned)
	}
	w.ask("and now?")
	if turn, d := w.fit(); d.Floor != nil || len(turn.Run) == 0 {
		t.Errorf("got the floor %v with %d pins, want a prompt", d.Floor, pinned)
	}
	if err := w.control().CheckPin(t.Context(), w.scope(), core.NewID[core.SessionID](), small); !errors.Is(err, core.ErrNotFound) {
		t.Errorf("another session: got %v, want ErrNotFound", err)
	}
}

func medium(w *world) core.Message {
	m := w.said(core.RoleUser, "a word of advice")
	m.TokenCount = 300
	return m
}

// Invariant 2: what is on other branches or deleted is excluded, and
// counted as such.
func TestCoverageCountsExcluded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(4, 100)
	before := w.report().Coverage
	w.Messages = append(w.Messages[:2:2], append(w.Messages[4:5:5], w.Messages[6:]...)...) // storage gives neither of them
	got := w.report().Coverage
	want := core.Coverage{Messages: before.Messages, Verbatim: before.Messages - 3, Excluded: 3}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
