package slack_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
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

// fromSlack is a message that a person wrote in Slack.
func fromSlack(text string) core.RunInput {
	return core.RunInput{Content: text, Source: core.SourceSlack}
}

// say publishes the next piece of the run's answer.
func (w *world) say(t *testing.T, run core.Run, offset int, text string) {
	t.Helper()
	if offset == 0 {
		w.feed.Begin(run)
	}
	w.feed.Delta(t.Context(), core.NewEvent(run.SessionID, run.ID, core.EventMessageDelta, core.DeltaData{
		MessageID: run.DraftID(run.Attempt, 0), Attempt: run.Attempt, Offset: offset, OffsetUTF16: offset, Text: text,
	}))
}

// last returns the newest post that is there.
func (s *slackServer) last() slackPost {
	if list := s.list(); len(list) > 0 {
		return list[len(list)-1]
	}
	return slackPost{}
}

// An answer is streamed while it is written, and complete at the end, also when Slack ends the stream
// early and when it loses an answer. Where Slack has no streams it is posted when it is complete.
func TestStreamedAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		faults   []fakeslack.Fault
		streamed bool
	}{
		"stream":            {nil, true},
		"stream ends early": {nil, true},
		"no streams":        {[]fakeslack.Fault{{Method: "chat.startStream", Error: "feature_not_enabled"}}, false},
		"lost start":        {[]fakeslack.Fault{{Method: "chat.startStream", Times: 1, LoseAnswer: true}}, true},
		"lost append":       {[]fakeslack.Fault{{Method: "chat.appendStream", Times: 1, LoseAnswer: true}}, true},
		"stop refused after a lost append": {[]fakeslack.Fault{
			{Method: "chat.appendStream", Times: 1, Status: http.StatusBadGateway}, {Method: "chat.stopStream", Times: 1, Status: http.StatusBadGateway},
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.slack.disturb(test.faults...)
				stop := w.start(t, "a/1")
				run := w.askIn(t, w.session.ID, fromSlack("Hello?"))
				first, second, third := "First line.\n", "Second line.\n", "Third line."
				w.say(t, run, 0, first)
				if test.streamed {
					w.slack.await(t, "the first line", func() bool { return strings.Contains(w.slack.last().Markdown, "First line.") })
				}
				if name == "stream ends early" {
					w.slack.clock.Add(300) // Slack ends streams after five minutes
				}
				w.say(t, run, len(first), second)
				w.answer(t, run, first+second+third)
				whole := func() string { return strings.ReplaceAll(strings.Join(w.slack.texts(), ""), "\n", "") }
				w.slack.await(t, "the answer", func() bool {
					return whole() == "First line.Second line.Third line." && !w.slack.last().Streaming
				})
				stop()
				list := w.slack.list()
				if len(list) != 1 || list[0].Streamed != test.streamed {
					t.Errorf("got the posts %+v, want one, streamed: %v", list, test.streamed)
				}
			})
		})
	}
}

// A stream is for the person who asked, as one of that person's workspace. If Slack refuses it, the
// answer is posted when it is complete, and other threads have streams all the same.
func TestStreamRefusedForAPerson(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.slack.Inject(fakeslack.Fault{Method: "chat.startStream", Error: "user_not_found", Times: 1})
		other := must.Get(repositories.NewSessions(w.db.Gorm).Create(t.Context(), core.Session{Owner: "ann", Agent: "a"}))(t)
		w.bind(t, other.ID, "C2", otherThread)
		w.start(t, "a/1")
		for i, asked := range []struct {
			session  core.SessionID
			user     string
			streamed bool
		}{{w.session.ID, "slack:T2/U2", false}, {other.ID, "slack:" + team + "/U1", true}} {
			a := must.Get(w.runs.Accept(t.Context(), ann(), core.AcceptRun{SessionID: asked.session, User: asked.user, Agent: "a", Worker: "w", Input: fromSlack("Hello?")}))(t)
			w.feed.Publish(t.Context(), a.Events)
			w.say(t, a.Run, 0, "First line.\n")
			w.slack.await(t, "the stream", func() bool { return len(w.slack.Calls("chat.startStream")) == i+1 })
			if !asked.streamed {
				w.answer(t, a.Run, "First line.\n")
			}
			w.slack.await(t, "the first line", func() bool {
				return strings.Contains(w.slack.last().Markdown, "First line.") && len(w.slack.list()) == i+1
			})
			compare.Equal(t, asked.user+": streamed", asked.streamed, w.slack.last().Streamed)
		}
		var started []string
		for _, call := range w.slack.Calls("chat.startStream") {
			started = append(started, fmt.Sprint(call.Args["recipient_team_id"], "/", call.Args["recipient_user_id"]))
		}
		if want := []string{"T2/U2", team + "/U1"}; !slices.Equal(started, want) {
			t.Errorf("streams were started for %q, want %q", started, want)
		}
	})
}

// A long answer is streamed into several posts, none of which is too long.
func TestStreamedLongAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.start(t, "a/1")
		run := w.askIn(t, w.session.ID, fromSlack("Hello?"))
		var text strings.Builder
		text.WriteString("```\n")
		w.say(t, run, 0, text.String())
		for i := range 2000 {
			piece := fmt.Sprintf("line %d of the code\n", i)
			w.say(t, run, text.Len(), piece)
			text.WriteString(piece)
			if i == 100 {
				w.slack.await(t, "the first part", func() bool { return len(w.slack.list()) > 0 })
			}
		}
		text.WriteString("```\nEnd.")
		w.answer(t, run, text.String())
		w.slack.await(t, "the end", func() bool { return strings.HasSuffix(w.slack.last().Markdown, "End.") && !w.slack.last().Streaming })
		stop()
		var lines []string
		for i, p := range w.slack.list() {
			if strings.Count(p.Markdown, "```") != 2 || len(p.Markdown) > 12_000 {
				t.Errorf("part %d: got %d bytes, %.60q … %q, want one code block", i, len(p.Markdown), p.Markdown, p.Markdown[max(0, len(p.Markdown)-20):])
			}
			for l := range strings.SplitSeq(p.Markdown, "\n") {
				if strings.HasPrefix(l, "line") {
					lines = append(lines, l)
				}
			}
		}
		compare.Equal(t, "lines: want 2000", []any{2000, "line 1999 of the code"}, []any{len(lines), lines[1999]})
	})
}

// What was shown of an attempt that is lost is marked; the next attempt is posted.
func TestDiscardedMessage(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(t, "a/1")
		run := w.askIn(t, w.session.ID, fromSlack("Hello?"))
		w.say(t, run, 0, "A wrong start.\n")
		w.slack.await(t, "the start", func() bool { return w.slack.last().Streaming })
		m := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: "Right."}
		w.write(t, core.RunWrite{
			RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Messages: []core.Message{m}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
			Events: []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded, core.DiscardedData{MessageID: run.DraftID(1, 0), Reason: "retry"})},
		})
		w.slack.awaitTexts(t, "", "Right.")
		compare.Contains(t, "the blocks: want a note", "interrupted", w.slack.list()[0].Blocks)
	})
}

// A deletion removes the post, and a change of the path marks what left it and posts what
// follows.
func TestDeletionAndPathChange(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(t, "a/1")
		w.turn(t, 0)
		w.slack.awaitTexts(t, turnTexts(1)...)
		branches := repositories.NewBranches(w.db.Gorm)
		log := must.Get(repositories.NewMessages(w.db.Gorm).GetMessagesAfter(t.Context(), ann(), w.session.ID, ""))(t)
		edited := w.askIn(t, w.session.ID, core.RunInput{Content: "better question", Source: core.SourceWeb, Edits: log[0].ID})
		w.answer(t, edited, "better answer")
		w.slack.awaitTexts(t, "question 0", "answer 0", "better question", "better answer")
		marked := func() (marks []bool) {
			for _, p := range w.slack.list() {
				marks = append(marks, strings.Contains(p.Blocks, "not part of the conversation"))
			}
			return marks
		}
		w.slack.await(t, "the marks", func() bool { return slices.Equal(marked(), []bool{true, true, false, false}) })
		_, events, err := branches.Select(t.Context(), ann(), w.session.ID, log[1].ID)
		must.Do(t, err)
		w.feed.Publish(t.Context(), events)
		w.slack.await(t, "the other marks", func() bool { return slices.Equal(marked(), []bool{false, false, true, true}) })
		events = must.Get(branches.Delete(t.Context(), ann(), w.session.ID, log[1].ID))(t)
		w.feed.Publish(t.Context(), events)
		w.slack.awaitTexts(t, "question 0", "better question", "better answer")
	})
}

// A failed run is reported to the person in Slack who asked, and to nobody else.
func TestFailedRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.start(t, "a/1")
		for _, in := range []core.RunInput{fromSlack("Hello?"), {Content: "from the web", Source: core.SourceWeb}} {
			a := must.Get(w.runs.Accept(t.Context(), ann(), core.AcceptRun{SessionID: w.session.ID, User: w.session.UserID, Agent: "a", Worker: "w", Input: in}))(t)
			w.feed.Publish(t.Context(), a.Events)
			w.write(t, core.RunWrite{RunID: a.Run.ID, SessionID: w.session.ID, Attempt: 1, End: &core.RunEnd{Status: core.RunFailed, Error: &core.RunError{Code: "x", Message: "the model <is> away"}}})
		}
		w.slack.awaitTexts(t, "from the web")
		if got := w.slack.ws.Ephemerals(w.slack.ann.ID); len(got) != 1 || got[0].Text != "the model &lt;is&gt; away" {
			t.Errorf("got the ephemeral messages %+v, want one", got)
		}
	})
}

// What is edited, deleted and interrupted while no process posts arrives in Slack afterwards:
// from the events, and without them when these are no longer kept.
func TestChangesWhileDown(t *testing.T) {
	t.Parallel()
	for name, kept := range map[string]bool{"events are kept": true, "events are gone": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				stop := w.start(t, "a/1")
				w.turn(t, 0)
				w.turn(t, 1)
				run := w.askIn(t, w.session.ID, fromSlack("Hello?"))
				w.say(t, run, 0, "A wrong start.\n")
				w.slack.await(t, "the start", func() bool { return w.slack.last().Streaming })
				stop()
				m := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: "Right."}
				w.write(t, core.RunWrite{
					RunID: run.ID, SessionID: run.SessionID, Attempt: 1, Messages: []core.Message{m}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
					Events: []core.Event{core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded, core.DiscardedData{MessageID: run.DraftID(1, 0), Reason: "retry"})},
				})
				log := must.Get(repositories.NewMessages(w.db.Gorm).GetMessagesAfter(t.Context(), ann(), w.session.ID, ""))(t)
				branches := repositories.NewBranches(w.db.Gorm)
				must.Get2(branches.Revise(t.Context(), ann(), core.ReviseMessage{SessionID: w.session.ID, MessageID: log[0].ID, Content: "question zero"}))(t)
				must.Get(branches.Delete(t.Context(), ann(), w.session.ID, log[2].ID))(t)
				if !kept {
					must.Do(t, w.db.Gorm.WithContext(t.Context()).Exec("DELETE FROM session_events").Error)
				}
				w.turn(t, 2)
				w.start(t, "a/2")
				w.slack.awaitTexts(t, "question zero", "answer 0", "answer 1", "", "Right.", "question 2", "answer 2")
				compare.Contains(t, "the blocks: want a note", "interrupted", w.slack.list()[3].Blocks)
			})
		})
	}
}
