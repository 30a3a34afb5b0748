package slack_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/slackfake/fakeslack"
)

// A purge deletes the posts of a session from Slack, waits when Slack wants that, goes on after
// an interruption, and counts what became of each post, also of one whose answer was lost.
// Nothing is posted after that.
func TestPurgePosts(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		w := newWorld(t, d)
		w.slack.disturb(noReplies(), fakeslack.Fault{Method: "chat.postMessage", Times: 4}, fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
		for i := range 3 {
			w.turn(t, i)
		}
		w.start(t, "a/1")
		w.slack.awaitTexts(t, turnTexts(3)...)
		all := w.slack.list()
		outbox := w.outboxes[0]
		ctx, cancel := context.WithCancel(t.Context())
		once := fakeslack.Fault{Method: "chat.delete", Times: 1}
		w.slack.disturb(once, fakeslack.Fault{Method: "chat.delete", Status: http.StatusBadGateway})
		go func() {
			_ = w.slack.Wait(ctx, func() bool { return len(w.slack.Calls("chat.delete")) == 2 })
			cancel()
		}()
		if _, err := outbox.PurgePosts(ctx, w.session.ID, false); !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v, want that it is canceled", err)
		}
		w.slack.ClearFaults()
		w.slack.delete(t, all[3].TS)
		w.slack.disturb(fakeslack.Fault{Method: "chat.delete", Times: 1, RetryAfter: time.Second}, once, fakeslack.Fault{Method: "chat.delete", Times: 1, Error: "cant_delete_message"})
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
		w.slack.disturb(noReplies(), fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true}, fakeslack.Fault{Method: "chat.delete", Status: http.StatusBadGateway})
		w.turn(t, 0)
		stop := w.start(t, "a/1")
		w.slack.awaitTexts(t, turnTexts(1)...)
		stop()
		if _, err := w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got error %v, want that Slack does not answer", err)
		}
		w.slack.disturb(noReplies())
		w.slack.delete(t, w.slack.list()[1].TS)
		got, err := w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false)
		if diff := cmp.Diff(core.PurgedPosts{Found: 2, Gone: 1, Unknown: 1}, got); diff != "" || err != nil {
			t.Errorf("posts (%v, -want +got):\n%s", err, diff)
		}
	})
}
