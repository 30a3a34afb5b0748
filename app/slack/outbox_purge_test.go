package slack_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

// A purge deletes the posts of a session from Slack, waits when Slack wants that, goes on after
// an interruption, and counts what became of each post, also of one whose answer was lost.
// Nothing is posted after that.
func TestPurgePosts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.slack.setFault(func(method string, call int, work func()) (int, string) {
			switch {
			case method == "chat.postMessage" && call == 5:
				work()
				return -1, ""
			case method == "conversations.replies":
				return 0, `{"ok":false,"error":"missing_scope"}`
			}
			return 0, ""
		})
		for i := range 3 {
			w.turn(t, i)
		}
		w.start(t, "a/1")
		w.slack.awaitTexts(t, turnTexts(3)...)
		all := w.slack.list()
		outbox := w.outboxes[0]
		ctx, cancel := context.WithCancel(t.Context())
		w.slack.setFault(func(method string, call int, _ func()) (int, string) {
			if method == "chat.delete" && call == 2 {
				cancel()
				return http.StatusBadGateway, ""
			}
			return 0, ""
		})
		if _, err := outbox.PurgePosts(ctx, w.session.ID, false); !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v, want that it is canceled", err)
		}
		w.slack.setFault(func(method string, call int, _ func()) (int, string) {
			switch {
			case method == "chat.delete" && call == 3:
				return http.StatusTooManyRequests, "1"
			case method == "chat.delete" && call == 5:
				return 0, `{"ok":false,"error":"cant_delete_message"}`
			}
			return 0, ""
		})
		w.slack.delete(t, all[3].TS)
		if got, err := outbox.PurgePosts(t.Context(), w.session.ID, true); err != nil || got != (core.PurgedPosts{Found: 5}) {
			t.Errorf("dry: got %+v (%v), want the five that are left", got, err)
		}
		got, err := outbox.PurgePosts(t.Context(), w.session.ID, false)
		if diff := cmp.Diff(core.PurgedPosts{Found: 6, Deleted: 4, Gone: 1, Refused: 1}, got); diff != "" || err != nil {
			t.Errorf("posts (%v, -want +got):\n%s", err, diff)
		}
		if left := w.slack.list(); len(left) != 1 || left[0].TS != all[2].TS {
			t.Errorf("left are %+v, want the post that Slack does not delete", left)
		}
		w.turn(t, 3)
		if thread, err := w.threads.OfSession(t.Context(), ann(), w.session.ID); err != nil || thread.Mode != core.SlackOff {
			t.Errorf("got the thread %+v (%v), want it off", thread, err)
		}
		if err := w.threads.Stop(t.Context(), core.NewID[core.SessionID]()); err != nil {
			t.Errorf("a session without a thread: got error %v, want not found", err)
		}
	})
}

// While Slack does not answer, a purge says so, and a post of which Slack does not say whether it
// is there counts as unknown.
func TestPurgePostsWithoutSlack(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.slack.setFault(func(method string, call int, work func()) (int, string) {
			switch method {
			case "chat.postMessage":
				if call == 1 {
					work()
					return -1, ""
				}
			case "conversations.replies":
				return 0, `{"ok":false,"error":"missing_scope"}`
			case "chat.delete":
				return http.StatusBadGateway, ""
			}
			return 0, ""
		})
		w.turn(t, 0)
		stop := w.start(t, "a/1")
		w.slack.awaitTexts(t, turnTexts(1)...)
		stop()
		if _, err := w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got error %v, want that Slack does not answer", err)
		}
		w.slack.delete(t, w.slack.list()[1].TS)
		w.slack.setFault(func(method string, _ int, _ func()) (int, string) {
			if method == "conversations.replies" {
				return 0, `{"ok":false,"error":"missing_scope"}`
			}
			return 0, ""
		})
		got, err := w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false)
		if diff := cmp.Diff(core.PurgedPosts{Found: 2, Gone: 1, Unknown: 1}, got); diff != "" || err != nil {
			t.Errorf("posts (%v, -want +got):\n%s", err, diff)
		}
	})
}
