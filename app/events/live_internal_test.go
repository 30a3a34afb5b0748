package events

import (
	"log/slog"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// Events of an active run are known without a gap, or not at all.
func TestActiveEvents(t *testing.T) {
	t.Parallel()
	event := func(kind core.EventType, run core.RunID, seq int64, size int) core.Event {
		e := core.NewEvent("s", run, kind, nil)
		e.Seq, e.Size = seq, size
		return e
	}
	started := event(core.EventRunStarted, "r", 4, 10)
	for _, tt := range []struct {
		name   string
		events []core.Event
		run    core.RunID
		after  int64
		want   int // -1 = they are read from the store
	}{
		{"from the first", []core.Event{started, event(core.EventMessageCreated, "r", 5, 10)}, "r", 3, 2},
		{"from a later one", []core.Event{started, event(core.EventMessageCreated, "r", 5, 10)}, "r", 4, 1},
		{"after the last", []core.Event{started}, "r", 4, 0},
		{"after one that is not there yet", []core.Event{started}, "r", 5, -1},
		{"before the run", []core.Event{started}, "r", 2, -1},
		{"of another run", []core.Event{started}, "q", 3, -1},
		{"of the next run of the session", []core.Event{started, event(core.EventRunStarted, "q", 9, 10)}, "r", 3, -1},
		{"without a start", []core.Event{event(core.EventMessageCreated, "r", 5, 10)}, "r", 4, -1},
		{"of other runs between", []core.Event{started, event(core.EventRunQueued, "q", 5, 10), event(core.EventMessageCreated, "r", 6, 10)}, "r", 3, 3},
		{"with a gap", []core.Event{started, event(core.EventMessageCreated, "r", 6, 10)}, "r", 3, -1},
		{"after the end", []core.Event{started, event(core.EventRunSucceeded, "r", 5, 10)}, "r", 3, -1},
		{"of a run that waits", []core.Event{started, event(core.EventRunWaiting, "r", 5, 10)}, "r", 3, -1},
		{"of many bytes", []core.Event{started, event(core.EventMessageCreated, "r", 5, maxActiveBytes)}, "r", 3, -1},
	} {
		l := &liveSessions{sessions: map[core.SessionID]*liveSession{}}
		for _, e := range tt.events {
			l.applyEvent(e)
		}
		got, ok := l.eventsAfter("s", tt.run, tt.after)
		n := len(got)
		compare.True(t, ok == (tt.want >= 0) && (!ok || n == tt.want), "%s: got %d events, %v, want %d", tt.name, n, ok, tt.want)
	}
}

// The sessions are bounded; those of runs that this process executes stay.
func TestLiveSessionsAreBounded(t *testing.T) {
	t.Parallel()
	f := New(NewLocal(0), nil, slog.New(slog.DiscardHandler))
	run := core.Run{ID: "r", SessionID: "s", Attempt: 1}
	f.Begin(run)
	for range 2 * maxLive {
		e := core.NewEvent(core.NewID[core.SessionID](), "q", core.EventRunStarted, nil)
		e.Seq = 1
		f.live.applyEvent(e)
	}
	n := len(f.live.sessions)
	compare.True(t, n <= maxLive && f.live.executes(run), "got %d sessions, want at most %d, with the one of the run", n, maxLive)
}
