package repositories_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

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
