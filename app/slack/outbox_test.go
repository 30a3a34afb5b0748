package slack_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/app/slack"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// A post whose answer is lost, while Slack does not let the thread be read, is unknown and
// never repeated.
func TestUnknownPost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.slack.disturb(noReplies(), fakeslack.Fault{Method: "chat.postMessage", Times: 1, Status: http.StatusBadGateway})
		w.turn(t, 0)
		w.start(t, "a/1")
		w.slack.awaitTexts(t, "answer 0")
		question := must.Get(repositories.NewMessages(w.db.Gorm).GetMessagesAfter(t.Context(), ann(), w.session.ID, ""))(t)
		posts, err := w.posts.Of(t.Context(), w.session.ID, string(question[0].ID))
		if err != nil || len(posts) != 1 || posts[0].State != core.SlackPostUnknown || posts[0].Error == "" {
			t.Errorf("got the posts %+v (%v), want one that is unknown", posts, err)
		}
		status, err := w.threads.Status(t.Context(), ann(), w.session.ID)
		faults := status.Faults
		if err != nil || len(faults) != 1 || faults[0].ItemID != string(question[0].ID) || faults[0].State != core.SlackPostUnknown || faults[0].Reason == "" {
			t.Errorf("got the faults %+v (%v), want the unknown post", faults, err)
		}
		w.fixUnknown(t, posts[0])
	})
}

// fixUnknown looks for a post that is unknown and not in Slack, and sends it again.
func (w *world) fixUnknown(t *testing.T, p core.SlackPost) {
	t.Helper()
	compare.Error(t, "Slack does not show the thread", core.ErrUnavailable, w.outboxes[0].LookUp(t.Context(), p))
	w.slack.disturb()
	must.Do(t, w.outboxes[0].LookUp(t.Context(), p))
	p, err := w.posts.Fault(t.Context(), ann(), p.SessionID, p.ItemID, 0)
	if err != nil || p.State != core.SlackPostFailed {
		t.Fatalf("it is not there: got %+v (%v), want one that failed", p, err)
	}
	setMode := func(mode core.SlackMode) {
		t.Helper()
		if _, _, err := w.threads.SetMode(t.Context(), ann(), p.SessionID, mode); err != nil {
			t.Fatal(err)
		}
	}
	setMode(core.SlackToWeb)
	compare.Error(t, "in a mode without posts", core.ErrConflict, compare.ErrorOf(w.posts.Resend(t.Context(), ann(), p)))
	setMode(core.SlackTwoWay)
	events, err := w.posts.Resend(t.Context(), ann(), p)
	if err != nil || len(events) != 1 || events[0].Type != core.EventMessageUpdated {
		t.Fatalf("got the events %+v (%v), want message.updated", events, err)
	}
	w.feed.Publish(t.Context(), events)
	w.slack.awaitTexts(t, "answer 0", "question 0")
	_, err = w.posts.Fault(t.Context(), ann(), p.SessionID, p.ItemID, 0)
	compare.Error(t, "sent again", core.ErrNotFound, err)
}

// A process that dies between a post and its ts leaves one post, which the next process
// finds in Slack.
func TestDeathBetweenPostAndTimestamp(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.turn(t, 0)
		w.slack.disturb(fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
		stop := w.start(t, "a/1", func(o *slack.OutboxOptions) { o.Settle = 2 * time.Second })
		w.slack.awaitTexts(t, "question 0")
		w.start(t, "a/2") // which has the thread before the first one looks for its post
		stop()
		w.slack.awaitTexts(t, turnTexts(1)...)
		w.turn(t, 1)
		w.slack.awaitTexts(t, turnTexts(2)...)
	})
}

// A purge deletes the posts of a session from Slack, waits when Slack wants that, goes on after
// an interruption, and counts what became of each post, also of one whose answer was lost.
// Nothing is posted after that.
func TestPurgePosts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
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
		compare.Equal(t, "dry: want the five that are left", (core.PurgedPosts{Found: 5}), must.Get(outbox.PurgePosts(t.Context(), w.session.ID, true))(t))
		got, err := outbox.PurgePosts(t.Context(), w.session.ID, false)
		if diff := cmp.Diff(core.PurgedPosts{Found: 6, Deleted: 4, Gone: 1, Refused: 1}, got); diff != "" || err != nil {
			t.Errorf("posts (%v, -want +got):\n%s", err, diff)
		}
		if left := w.slack.list(); len(left) != 1 || left[0].TS != all[2].TS {
			t.Errorf("left are %+v, want the post that Slack does not delete", left)
		}
		w.turn(t, 3)
		compare.Equal(t, "thread.Mode: want it off", core.SlackOff, must.Get(w.threads.OfSession(t.Context(), ann(), w.session.ID))(t).Mode)
		compare.Error(t, "a session without a thread: want not found", nil, w.threads.Stop(t.Context(), core.NewID[core.SessionID]()))
	})
}

// While Slack does not answer, a purge says so, and a post of which Slack does not say whether it
// is there counts as unknown.
func TestPurgePostsWithoutSlack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.slack.disturb(noReplies(), fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true}, fakeslack.Fault{Method: "chat.delete", Status: http.StatusBadGateway})
		w.turn(t, 0)
		stop := w.start(t, "a/1")
		w.slack.awaitTexts(t, turnTexts(1)...)
		stop()
		compare.Error(t, "error: want that Slack does not answer", core.ErrUnavailable, compare.ErrorOf(w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false)))
		w.slack.disturb(noReplies())
		w.slack.delete(t, w.slack.list()[1].TS)
		got, err := w.outboxes[0].PurgePosts(t.Context(), w.session.ID, false)
		if diff := cmp.Diff(core.PurgedPosts{Found: 2, Gone: 1, Unknown: 1}, got); diff != "" || err != nil {
			t.Errorf("posts (%v, -want +got):\n%s", err, diff)
		}
	})
}
