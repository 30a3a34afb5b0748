package e2e_test

import (
	"errors"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Old events go at the start, while the conversation stays and goes on: who comes back
// with an old number is told to load the messages, who has the newest misses nothing.
// Sessions that were archived long ago go for good.
func TestRetention(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, apptest.WithModel("echo", 8192, 1024, apptest.NewProvider(t, provider.Options{})), func(c *config.Config) {
			c.Retention.ArchivedSessions = 24 * time.Hour
		})
		old, archived, lately := apptest.NewSession(t, h.Client, core.Session{}), apptest.NewSession(t, h.Client, core.Session{}), apptest.NewSession(t, h.Client, core.Session{})
		for _, id := range []core.SessionID{old, old, archived, lately} {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Remember the harpsichord."})
		}
		for _, id := range []core.SessionID{archived, lately} {
			if _, err := h.UpdateSession(t.Context(), id, core.SessionPatch{Archived: new(true)}); err != nil {
				t.Fatal(err)
			}
		}
		page, err := h.Messages(t.Context(), old, core.MessageQuery{})
		if err != nil {
			t.Fatal(err)
		}
		last := page.LastEventID
		h.Stop()
		database := dbtest.Open(t, url)
		for _, stmt := range []string{
			"UPDATE session_events SET at = '2020-01-01 00:00:00+00:00' WHERE session_id = '" + string(old) + "'",
			"UPDATE sessions SET archived_at = '2020-01-01 00:00:00+00:00' WHERE id = '" + string(archived) + "'",
		} {
			if err := database.Gorm.WithContext(t.Context()).Exec(stmt).Error; err != nil {
				t.Fatal(err)
			}
		}
		h.Start()
		eventually(t, h.Client, 1, "bobbin_retention_sweeps_total", "outcome=done")
		m := scrape(t, h.Client) // that one may have counted the removed before the sweep was over
		if got := m.sum("bobbin_retention_removed_total", "kind=events"); got != float64(last-1) {
			t.Errorf("got %v events removed, want all %d of the old session but its last", got, last)
		}
		if got := m.sum("bobbin_retention_removed_total", "kind=sessions"); got != 1 {
			t.Errorf("got %v sessions removed, want the one that was archived long ago", got)
		}
		if _, err := h.Session(t.Context(), archived); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("the session that was archived long ago: got %v, want that it does not exist", err)
		}
		if len(apptest.ListMessages(t, h.Client, lately)) != 2 || len(apptest.ListMessages(t, h.Client, old)) != 4 {
			t.Error("messages are missing of a session that was archived lately, or of the one whose events are gone")
		}
		if e := firstEvent(t, h, old, 2); e.Type != core.EventResync {
			t.Errorf("who comes with an old number gets %s %d first, want resync", e.Type, e.Seq)
		}
		if e := firstEvent(t, h, old, last-1); e.Seq != last {
			t.Errorf("who missed the last event gets %s %d first, want %d", e.Type, e.Seq, last)
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: old, Content: "And go on."})
		if e := firstEvent(t, h, old, last); e.Seq != last+1 {
			t.Errorf("who has seen everything gets %s %d first, want %d", e.Type, e.Seq, last+1)
		}
	})
}

// firstEvent returns what a client gets first that comes back with the number.
func firstEvent(t *testing.T, h *apptest.Bobbin, id core.SessionID, after int64) core.Event {
	t.Helper()
	for e, err := range h.WatchSession(t.Context(), id, core.Cursor{After: after}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 0 || e.Type == core.EventResync {
			return e
		}
	}
	t.Fatal("no event came")
	return core.Event{}
}
