package repositories_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func slackThread(session core.SessionID, ts string) core.SlackThread {
	return core.SlackThread{SessionID: session, Owner: "ann", Team: "T1", Channel: "C1", Thread: ts, Mode: core.SlackTwoWay}
}

// bindThread binds a thread, which has the ts, to a new session.
func (s *store) bindThread(t *testing.T, ts string) core.SlackThread {
	t.Helper()
	thread := slackThread(s.session(t).ID, ts)
	must.Do(t, bindThread(t, repositories.NewSlackThreads(s.Gorm), thread))
	return thread
}

// bindThread binds the thread and returns the error.
func bindThread(t *testing.T, threads *repositories.SlackThreads, thread core.SlackThread) error {
	t.Helper()
	_, err := threads.Bind(t.Context(), thread)
	return err
}

func claimOf(worker string) core.SlackClaim {
	return core.SlackClaim{Worker: worker, Lease: time.Minute, Limit: 10}
}

// A thread belongs to one session and a session to one thread.
func TestSlackBind(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		threads := repositories.NewSlackThreads(s.Gorm)
		first, other := s.bindThread(t, "1.1"), s.session(t)
		compare.Error(t, "the second time", nil, bindThread(t, threads, first))
		compare.Equal(t, "thread", first, must.Get(threads.Find(t.Context(), "T1", "C1", "1.1"))(t))
		compare.Equal(t, "of the session: thread", first, must.Get(threads.OfSession(t.Context(), ann(), first.SessionID))(t))
		users := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: "user 1", Agent: "assistant"}))(t)
		must.Do(t, bindThread(t, threads, slackThread(users.ID, "9.9")))
		for tenant, want := range map[core.Tenant]int{ann(): 2, bob(): 0, {Owner: "ann", User: "user 1"}: 0} {
			list := must.Get(s.sessions.List(t.Context(), tenant, core.SessionQuery{Slack: true}))(t)
			compare.Equal(t, fmt.Sprintf("sessions in Slack for %+v", tenant), want, len(list.Items))
		}
		wantNotFound(t, "of another owner", compare.ErrorOf(threads.OfSession(t.Context(), bob(), first.SessionID)))
		wantNotFound(t, "the same channel of another team", compare.ErrorOf(threads.Find(t.Context(), "T2", "C1", "1.1")))
		wantError(t, "another session", bindThread(t, threads, slackThread(other.ID, "1.1")), core.ErrConflict)
		wantError(t, "another thread", bindThread(t, threads, slackThread(first.SessionID, "2.2")), core.ErrConflict)
		foreign := slackThread(other.ID, "3.3")
		foreign.Owner = "bob"
		wantNotFound(t, "a session of another owner", bindThread(t, threads, foreign))
		bobs, err := s.sessions.Create(t.Context(), core.Session{Owner: "bob", Agent: "assistant"})
		must.Do(t, err)
		stolen := slackThread(bobs.ID, "1.1")
		stolen.Owner = "bob"
		wantError(t, "a thread of another owner", bindThread(t, threads, stolen), core.ErrConflict)

		// The alias of an archived session moves to its fork; the thread follows.
		must.Do(t, repositories.NewAliases(s.Gorm).Rebind(t.Context(), "ann", first.Alias(), first.SessionID, other.ID))
		must.Do(t, bindThread(t, threads, slackThread(other.ID, "1.1")))
		compare.Equal(t, "moved: got.SessionID", other.ID, must.Get(threads.Find(t.Context(), "T1", "C1", "1.1"))(t).SessionID)
		for range 2 {
			must.Get(threads.Unbind(t.Context(), ann(), other.ID))(t)
		}
		wantNotFound(t, "detached", compare.ErrorOf(threads.Find(t.Context(), "T1", "C1", "1.1")))
		compare.Error(t, "a detached thread", nil, bindThread(t, threads, slackThread(first.SessionID, "1.1")))
	})
}

// A thread is behind when its session gets an event, and one process has it at a time.
func TestSlackClaim(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		threads := repositories.NewSlackThreads(s.Gorm)
		thread := s.bindThread(t, "1.1")
		if got, err := threads.Claim(t.Context(), claimOf("a/1")); err != nil || len(got) != 0 {
			t.Fatalf("nothing happened: got %+v (%v), want no thread", got, err)
		}
		s.turns(t, thread.SessionID, 1)
		last := must.Get(s.events.Last(t.Context(), ann(), thread.SessionID))(t)
		got := make([][]core.SlackBacklog, 4)
		race(4, func(i int) {
			list, err := threads.Claim(t.Context(), claimOf(fmt.Sprintf("%d/1", i)))
			compare.Error(t, "claim", nil, err)
			got[i] = list
		})
		holder := ""
		for i, list := range got {
			for _, b := range list {
				if holder != "" || b.SlackThread != thread || b.SentSeq != 1 { // that it was bound
					t.Fatalf("got the claims %+v, want one", got)
				}
				holder = fmt.Sprintf("%d/1", i)
			}
		}
		wantError(t, "another worker", threads.Advance(t.Context(), "x/1", thread.SessionID, last, time.Minute), core.ErrStale)
		must.Do(t, threads.Advance(t.Context(), holder, thread.SessionID, last-1, time.Minute))
		must.Do(t, threads.Release(t.Context(), holder, thread.SessionID, 0, ""))
		wantError(t, "after the release", threads.Advance(t.Context(), holder, thread.SessionID, last, time.Minute), core.ErrStale)
		again, err := threads.Claim(t.Context(), claimOf("y/1"))
		must.True(t, err == nil && len(again) == 1 && again[0].SentSeq == last-1, "got %+v (%v), want the thread after event %d", again, err, last-1)
		// The same replica starts again.
		must.Do(t, threads.ReleaseAll(t.Context(), "y/2"))
		busy := core.SlackClaim{Worker: "z/1", Lease: time.Minute, Limit: 10, Busy: []string{"T1/C1"}}
		compare.Equal(t, "a busy channel: len(list): want nothing", 0, len(must.Get(threads.Claim(t.Context(), busy))(t)))
		if list, err := threads.Claim(t.Context(), claimOf("z/1")); err != nil || len(list) != 1 {
			t.Fatalf("got %+v (%v), want the thread", list, err)
		}
		must.Do(t, threads.Release(t.Context(), "z/1", thread.SessionID, time.Hour, "invalid_auth"))
		status, err := threads.Status(t.Context(), core.Tenant{Owner: thread.Owner}, thread.SessionID)
		behind, countErr := threads.CountBehind(t.Context())
		if err != nil || countErr != nil || behind != 1 || status.SlackThread != thread || status.Reason != "invalid_auth" || status.BehindSince == nil {
			t.Errorf("got %+v, %d behind (%v, %v), want the reason and since when", status, behind, err, countErr)
		}
		compare.Equal(t, "due in an hour: len(list): want nothing", 0, len(must.Get(threads.Claim(t.Context(), claimOf("z/2")))(t)))
	})
}

// A mode that posts nothing is never behind; back to one that posts, the thread goes on with
// what happens then.
func TestSlackSetMode(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		threads := repositories.NewSlackThreads(s.Gorm)
		thread := s.bindThread(t, "1.1")
		if got, _, err := threads.SetMode(t.Context(), ann(), thread.SessionID, core.SlackToWeb); err != nil || got.Mode != core.SlackToWeb {
			t.Fatalf("got thread %+v (%v), want mode to_web", got, err)
		}
		s.turns(t, thread.SessionID, 2)
		compare.Equal(t, "to_web: len(list): want nothing", 0, len(must.Get(threads.Claim(t.Context(), claimOf("a/1")))(t)))
		must.Get2(threads.SetMode(t.Context(), ann(), thread.SessionID, core.SlackToSlack))(t)
		compare.Equal(t, "to_slack: len(list): want nothing yet", 0, len(must.Get(threads.Claim(t.Context(), claimOf("a/1")))(t)))
		s.turns(t, thread.SessionID, 1)
		list, err := threads.Claim(t.Context(), claimOf("a/1"))
		compare.True(t, err == nil && len(list) == 1 && list[0].FirstSeq == 4, "got %+v (%v), want the thread after message 4", list, err)
		must.Get2(threads.SetMode(t.Context(), ann(), thread.SessionID, core.SlackOff))(t)
		wantError(t, "off", threads.Advance(t.Context(), "a/1", thread.SessionID, 1, time.Minute), core.ErrStale)
		_, _, err = threads.SetMode(t.Context(), bob(), thread.SessionID, core.SlackOff)
		wantNotFound(t, "another owner", err)
		_, _, err = threads.SetMode(t.Context(), ann(), s.session(t).ID, core.SlackOff)
		wantNotFound(t, "a session without a thread", err)
	})
}

// A post is begun once, by the process that has the lease of its thread, and is found by
// Slack's id.
func TestSlackPosts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		threads, posts := repositories.NewSlackThreads(s.Gorm), repositories.NewSlackPosts(s.Gorm)
		thread := s.bindThread(t, "1.1")
		s.turns(t, thread.SessionID, 1)
		log := s.log(t, thread.SessionID)
		p := core.SlackPost{
			SessionID: thread.SessionID, ItemID: string(log[1].ID), Owner: "ann", Kind: core.SlackPostMessage,
			Team: "T1", Channel: "C1", Thread: "1.1", To: 8,
		}
		_, _, err := posts.Begin(t.Context(), "a/1", p)
		wantError(t, "without the lease", err, core.ErrStale)
		if list, err := threads.Claim(t.Context(), claimOf("a/1")); err != nil || len(list) != 1 {
			t.Fatalf("got %+v (%v), want the thread", list, err)
		}
		begun, first, err := posts.Begin(t.Context(), "a/1", p)
		must.True(t, err == nil && first && begun.State == core.SlackPostSending, "got post %+v, %v (%v), want a new one", begun, first, err)
		if again, first, err := posts.Begin(t.Context(), "a/1", p); err != nil || first || !again.CreatedAt.Equal(begun.CreatedAt) {
			t.Errorf("again: got post %+v, %v (%v), want the first one", again, first, err)
		}
		compare.Equal(t, "unfinished: len(list): want one post", 1, len(must.Get(posts.Unfinished(t.Context(), thread.SessionID))(t)))
		begun.State, begun.TS, begun.Hash = core.SlackPostSent, "1.2", "h"
		wantError(t, "an update without the lease", posts.Update(t.Context(), "b/1", begun), core.ErrStale)
		must.Do(t, posts.Update(t.Context(), "a/1", begun))
		compare.Equal(t, "post", begun, must.Get(posts.PostAt(t.Context(), "T1", "C1", "1.2"))(t))
		wantNotFound(t, "a post without a ts", compare.ErrorOf(posts.PostAt(t.Context(), "T1", "C1", "")))
		if ts, seq, err := posts.LastPosted(t.Context(), thread); err != nil || ts != "1.2" || seq != 2 {
			t.Errorf("last: got %q and %d (%v), want 1.2 and 2", ts, seq, err)
		}
		compare.Equal(t, "on the path: len(list): want nothing", 0, len(must.Get(posts.Misplaced(t.Context(), thread.SessionID))(t)))
		must.Get2(repositories.NewBranches(s.Gorm).Select(t.Context(), ann(), thread.SessionID, log[0].ID))(t)
		s.exec(t, "UPDATE messages SET on_path = false WHERE id = ?", log[1].ID)
		compare.Equal(t, "off the path: len(list): want one post", 1, len(must.Get(posts.Misplaced(t.Context(), thread.SessionID))(t)))
		must.Get(repositories.NewPurges(s.Gorm).Session(t.Context(), thread.SessionID, false))(t)
		compare.Equal(t, "purged: rows", 0, s.count(t, "SELECT (SELECT COUNT(*) FROM slack_posts) + (SELECT COUNT(*) FROM slack_threads)"))
	})
}

// The first part of a message is changed without the others: with their ts it would be a post of
// its own again, which the index refuses, and the thread would stand still.
func TestSlackPostOfSeveralParts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		threads, posts := repositories.NewSlackThreads(s.Gorm), repositories.NewSlackPosts(s.Gorm)
		thread := s.bindThread(t, "1.1")
		s.turns(t, thread.SessionID, 1)
		if list, err := threads.Claim(t.Context(), claimOf("a/1")); err != nil || len(list) != 1 {
			t.Fatalf("got %+v (%v), want the thread", list, err)
		}
		item := string(s.log(t, thread.SessionID)[1].ID)
		var sent []core.SlackPost
		for part, ts := range []string{"1.2", "1.3"} {
			p, _, err := posts.Begin(t.Context(), "a/1", core.SlackPost{
				SessionID: thread.SessionID, ItemID: item, Part: part, Owner: "ann", Kind: core.SlackPostMessage, Team: "T1", Channel: "C1", Thread: "1.1",
			})
			must.Do(t, err)
			p.State, p.TS = core.SlackPostSent, ts
			must.Do(t, posts.Update(t.Context(), "a/1", p))
			sent = append(sent, p)
		}
		sent[0].Hash = "edited"
		compare.Error(t, "update of the first part", nil, posts.Update(t.Context(), "a/1", sent[0]))
		for i := range sent {
			sent[i].State = core.SlackPostPending
			compare.Error(t, fmt.Sprintf("part %d becomes pending", i), nil, posts.Update(t.Context(), "a/1", sent[i]))
		}
		if p, begun, err := posts.Begin(t.Context(), "a/1", sent[0]); err != nil || !begun {
			t.Errorf("begin the first part again: got %+v, %v (%v), want it to begin", p, begun, err)
		}
		list, err := posts.Of(t.Context(), thread.SessionID, item)
		if err != nil || len(list) != 2 || list[0].State != core.SlackPostSending || list[0].Hash != "edited" || list[1].State != core.SlackPostPending || list[1].Hash != "" {
			t.Errorf("got the posts %+v (%v), want only the first one changed", list, err)
		}
	})
}

// slackItem is a message of a thread, with the user carol.
func slackItem(thread, ts string) core.SlackItem {
	return core.SlackItem{
		ID: core.NewID[core.SlackItemID](), Owner: "ann", App: "A1", Key: "C1/" + ts, Kind: core.SlackMessage, Lane: "T1/C1/" + thread, Position: ts,
		User: "carol", Payload: []byte(`{"text":"the pump is red"}`), CreatedAt: core.Now(),
	}
}

// addItems stores items that are new.
func addItems(t *testing.T, inbox *repositories.SlackInbox, items ...core.SlackItem) {
	t.Helper()
	for _, item := range items {
		if added, err := inbox.Add(t.Context(), item); err != nil || !added {
			t.Fatalf("add %s: got %v, %v, want it added", item.Key, added, err)
		}
	}
}

// claimItem returns the next item, which must be the one with the key; empty = there must be none.
func claimItem(t *testing.T, inbox *repositories.SlackInbox, worker, key string) core.SlackItem {
	t.Helper()
	item, err := inbox.Claim(t.Context(), worker)
	if key == "" {
		wantNotFound(t, "a claim of "+worker, err)
		return item
	}
	must.True(t, err == nil && item.Key == key, "claim of %s: got %q, %v, want %s", worker, item.Key, err, key)
	return item
}

// A message arrives twice: as a mention too, or because the process died between the insert and
// the acknowledgment, and Slack repeats it. It is stored once, also concurrently.
func TestSlackItemIsStoredOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		inbox := repositories.NewSlackInbox(s.Gorm)
		var stored atomic.Int32
		race(racers, func(int) {
			added, err := inbox.Add(t.Context(), slackItem("1.0", "1.0"))
			compare.Error(t, "add", nil, err)
			if added {
				stored.Add(1)
			}
		})
		compare.Equal(t, "how often it was stored", 1, stored.Load())
		// After a restart: the item waits, and the repetition adds nothing, before it is done and after.
		restarted := repositories.NewSlackInbox(s.Gorm)
		item := claimItem(t, restarted, "one/2", "C1/1.0")
		compare.Equal(t, "the item", []any{`{"text":"the pump is red"}`, "carol", 1}, []any{string(item.Payload), item.User, item.Attempts})
		compare.Equal(t, "repeated while it is handled", false, must.Get(restarted.Add(t.Context(), slackItem("1.0", "1.0")))(t))
		must.Do(t, restarted.Finish(t.Context(), item))
		if added, err := restarted.Add(t.Context(), slackItem("1.0", "1.0")); err != nil || added {
			t.Errorf("repeated when it is done: got %v, %v", added, err)
		}
		claimItem(t, restarted, "one/2", "")
		other := slackItem("1.0", "1.0")
		other.App = "A2"
		addItems(t, inbox, other)
	})
}

// The items of a thread are handled in Slack's order, one at a time; other threads do not wait.
func TestSlackLanes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx, inbox := t.Context(), repositories.NewSlackInbox(s.Gorm)
		addItems(t, inbox, slackItem("1.0", "3.0"), slackItem("1.0", "1.0"), slackItem("1.0", "2.0"))
		first := claimItem(t, inbox, "one/1", "C1/1.0")
		claimItem(t, inbox, "two/1", "")
		addItems(t, inbox, slackItem("1.0", "0.5"), slackItem("9.0", "9.0")) // a late one, and another thread
		claimItem(t, inbox, "two/1", "C1/9.0")
		claimItem(t, inbox, "two/1", "")
		must.Do(t, inbox.Finish(ctx, first))
		late := claimItem(t, inbox, "two/1", "C1/0.5")
		late.Error = "a run is at work"
		must.Do(t, inbox.Retry(ctx, late, time.Minute))
		claimItem(t, inbox, "one/1", "") // those behind it wait
		s.exec(t, "UPDATE slack_inbox SET due_at = '2000-01-01 00:00:00+00:00' WHERE item_key = 'C1/0.5'")
		again := claimItem(t, inbox, "one/1", "C1/0.5")
		compare.Equal(t, "want the second attempt", []any{2, "a run is at work"}, []any{again.Attempts, again.Error})
		wantError(t, "finish without the lease", inbox.Finish(ctx, late), core.ErrStale)
		wantError(t, "retry without the lease", inbox.Retry(ctx, late, 0), core.ErrStale)
	})
}

// One gesture becomes two messages with different timestamps: the older one counts, or the one
// that was handled already; far apart they are two.
func TestSlackGesture(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx, inbox := t.Context(), repositories.NewSlackInbox(s.Gorm)
		item := func(ts string) core.SlackItem {
			i := slackItem(ts, ts)
			i.Gesture = "C1/U1/g1"
			return i
		}
		first, twin, late := item("1700000000.000100"), item("1700000020.000200"), item("1700000200.000300")
		other := item("1700000010.000100")
		other.Gesture = ""
		addItems(t, inbox, twin, first, late, other)
		want := func(i core.SlackItem, repeats bool) {
			t.Helper()
			compare.Equal(t, i.Position, repeats, must.Get(inbox.Repeats(ctx, i))(t))
		}
		want(first, false)
		want(twin, true)
		want(late, false)
		want(other, false)
		for range 4 { // the newer one was first: the older one repeats it
			i := must.Get(inbox.Claim(ctx, "one/1"))(t)
			if i.ID == twin.ID {
				must.Do(t, inbox.Finish(ctx, i))
			}
		}
		want(first, true)
	})
}

// A message of Slack is found in the log and in the queue, and while it waits in the inbox.
func TestFindSlackMessage(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		ctx, inbox := t.Context(), repositories.NewSlackInbox(s.Gorm)
		session := s.session(t)
		q := core.SlackMessageQuery{App: "A1", Key: "C1/1.0", SessionID: session.ID, ClientMessageID: "T1/C1/1.0"}
		want := func(ref core.SlackMessageRef) {
			t.Helper()
			compare.Equal(t, "message", ref, must.Get(inbox.FindMessage(ctx, q))(t))
		}
		want(core.SlackMessageRef{})
		addItems(t, inbox, slackItem("1.0", "1.0"))
		want(core.SlackMessageRef{Pending: true})
		q.SessionID = "" // its thread is not bound yet
		want(core.SlackMessageRef{Pending: true})
		q.SessionID = session.ID
		stored := must.Get(s.messages.Append(ctx, ann(), core.AppendMessages{SessionID: session.ID, Messages: []core.Message{
			{Role: core.RoleUser, Content: "the pump", ClientMessageID: "T1/C1/1.0"}}}))(t)
		want(core.SlackMessageRef{MessageID: stored.Messages[0].ID, Pending: true})
		accepted := must.Get(s.runs.Accept(ctx, ann(), core.AcceptRun{SessionID: session.ID, Agent: "tester", ClientMessageID: "T1/C1/2.0", Input: core.RunInput{Content: "green"}}))(t)
		q.ClientMessageID, q.Key = "T1/C1/2.0", "C1/2.0"
		want(core.SlackMessageRef{MessageID: accepted.Run.UserMessageID})
		for end, want := range map[string]string{"1.0": "", "2.0": "1.0", "3.0": "2.0"} {
			got, err := inbox.MessageBefore(ctx, session.ID, "T1/C1/", end)
			compare.Error(t, "before "+end, nil, err)
			compare.Equal(t, "before "+end, want, got)
		}
	})
}

func installation(team, tokens string) core.SlackInstallation {
	return core.SlackInstallation{
		Team: team, Name: "Acme", App: "A1", BotUser: "U1", Owner: "ann", Scopes: "chat:write", Tokens: []byte(tokens),
		State: core.SlackInstalled, CreatedAt: core.Now(), UpdatedAt: core.Now(),
	}
}

// An installation is found by its workspace as long as it is active. Tokens that were replaced
// meanwhile do not end it.
func TestSlackInstallationFind(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		r := repositories.NewSlackInstallations(s.Gorm)
		own := installation("T1", "one")
		for _, i := range []core.SlackInstallation{installation("T1", "old"), own, installation("T0", "other")} {
			must.Do(t, r.Save(t.Context(), i))
		}
		must.Do(t, r.Revoke(t.Context(), installation("T1", "old")))
		if got, err := r.Find(t.Context(), "T1"); err != nil || cmp.Diff(own, got) != "" {
			t.Errorf("error %v, and the installation (-want +got):\n%s", err, cmp.Diff(own, got))
		}
		must.Do(t, r.Revoke(t.Context(), own))
		wantNotFound(t, "the installation", compare.ErrorOf(r.Find(t.Context(), "T1")))
		all := must.Get(r.List(t.Context()))(t)
		compare.True(t, len(all) == 2 && all[1].State == core.SlackRevoked && all[1].Tokens == nil, "got %+v, want that of T1 revoked, without tokens", all)
	})
}
