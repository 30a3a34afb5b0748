package repositories_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func hook(path string) *core.Webhook {
	return &core.Webhook{URL: core.Target("https://a.example/" + path + "?token=t"), Secret: "whsec_" + path}
}

// told accepts a run with its own webhook in a new session, and ends it.
func (s *store) told(t *testing.T) core.Run {
	t.Helper()
	in := ask(s.session(t).ID, "one")
	in.Webhook = hook("run")
	return s.finish(t, s.accept(t, in).Run, "answer").Run
}

// due claims all that is due.
func (s *store) due(t *testing.T, worker string) []core.Delivery {
	t.Helper()
	return must.Get(s.deliveries.Claim(t.Context(), core.DeliveryClaim{Worker: worker, Lease: time.Minute, Limit: 100, Each: 100}))(t)
}

func (s *store) deliveriesOf(t *testing.T, run core.RunID) []core.Delivery {
	t.Helper()
	return must.Get(s.deliveries.List(t.Context(), ann(), run))(t)
}

// The end of a run is delivered to the run's webhook, else to the session's, else to none;
// the delivery is committed with the end, however the run ends.
func TestEndsOfRunsAreDeliveries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", Agent: "assistant", Webhook: hook("first")}))(t)
		webhook := func(w *core.Webhook) *core.Webhook {
			t.Helper()
			must.Get2(s.sessions.Update(t.Context(), ann(), session.ID, core.SessionPatch{Webhook: w}))(t)
			return s.get(t, session.ID).Webhook
		}
		compare.Equal(t, "webhook", hook("session"), webhook(hook("session")))
		in := ask(session.ID, "one")
		in.Webhook = hook("run")
		own := s.accept(t, in).Run
		queued := s.accept(t, ask(session.ID, "two")).Run
		must.Get2(s.runs.RequestCancel(t.Context(), ann(), queued.ID))(t)
		s.finish(t, own, "answer")
		s.turns(t, s.session(t).ID, 1)
		got := webhook(&core.Webhook{})
		compare.True(t, got == nil, "got the webhook %+v after it was taken away", got)
		due := s.due(t, worker)
		must.True(t, len(due) == 2, "due: got %+v, want 2 deliveries", due)
		for _, want := range []struct {
			run   core.RunID
			event core.EventType
			hook  *core.Webhook
		}{{own.ID, core.EventRunSucceeded, hook("run")}, {queued.ID, core.EventRunCanceled, hook("session")}} {
			list := s.deliveriesOf(t, want.run)
			must.True(t, len(list) == 1, "deliveries of run %s: got %d, want 1", want.run, len(list))
			got := list[0]
			if got.Event != want.event || got.Target != want.hook.URL || got.Secret != want.hook.Secret || got.State != core.DeliveryPending || got.Attempt != 1 || got.LeaseOwner != worker {
				t.Errorf("delivery: got %+v, want %s to %+v", got, want.event, want.hook)
			}
		}
		for _, e := range s.allEvents(t, session.ID) {
			text := dataText(t, e)
			compare.True(t, !strings.Contains(text, "whsec_") && !strings.Contains(text, "token="), "the event %s has a secret: %s", e.Type, text)
		}
	})
}

func TestSettle(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		run := s.told(t)
		settle := func(c core.Delivery, state core.DeliveryState, wait time.Duration) ([]core.Event, error) {
			return s.deliveries.Settle(t.Context(), core.Settlement{ID: c.ID, Attempt: c.Attempt, State: state, Wait: wait, Error: "no"})
		}
		first := s.due(t, worker)[0]
		compare.Equal(t, "a new delivery was taken over", false, first.TakenOver)
		compare.Equal(t, "a leased delivery was claimed again", 0, len(s.due(t, "worker-2")))
		compare.Equal(t, "events of the wait for the next try", 0, len(must.Get(settle(first, core.DeliveryPending, time.Hour))(t)))
		compare.Equal(t, "claimed before its time", 0, len(s.due(t, worker)))
		got := s.deliveriesOf(t, run.ID)[0]
		compare.Equal(t, fmt.Sprintf("%+v waits", got), true, got.NextAt != nil && got.Error == "no" && got.LeaseUntil == nil)
		s.exec(t, "UPDATE deliveries SET due_at = '2000-01-01 00:00:00+00:00'")
		second := s.due(t, worker)[0]
		compare.Equal(t, "second try", []any{false, first.ID, 2, 2}, []any{second.TakenOver, second.ID, second.Attempt, second.Tries})
		wantError(t, "settle an older attempt", compare.ErrorOf(settle(first, core.DeliveryDelivered, 0)), core.ErrStale)
		events, err := settle(second, core.DeliveryFailed, 0)
		compare.True(t, err == nil && len(events) == 1 && decode[core.DeliveryData](t, events[0]).State == core.DeliveryFailed, "failed: %v, events %+v", err, events)
		wantError(t, "settle again", compare.ErrorOf(settle(second, core.DeliveryDelivered, 0)), core.ErrStale)
		wantNotFound(t, "settle nothing", compare.ErrorOf(settle(core.Delivery{ID: core.NewID[core.DeliveryID]()}, core.DeliveryFailed, 0)))
		got = s.deliveriesOf(t, run.ID)[0]
		compare.Equal(t, fmt.Sprintf("%+v has failed", got), true, got.State == core.DeliveryFailed && got.FinishedAt != nil)
		again, events, err := s.deliveries.Retry(t.Context(), ann(), run.ID, first.ID)
		compare.Equal(t, "tried again", "<nil>, pending, tries 0, events 1", fmt.Sprintf("%v, %s, tries %d, events %d", err, again.State, again.Tries, len(events)))
		compare.Equal(t, "due after that", 1, len(s.due(t, worker)))
	})
}

// Two processes that claim concurrently share the due deliveries; those of a process that
// died are claimed when its lease has expired, or immediately after its restart.
func TestClaimDeliveries(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const n = 20
		for range n {
			s.told(t)
		}
		var mu sync.Mutex
		seen := map[core.DeliveryID]int{}
		race(2, func(i int) {
			for {
				list, err := s.deliveries.Claim(t.Context(), core.DeliveryClaim{Worker: fmt.Sprint("worker-", i+1), Lease: time.Minute, Limit: 3, Each: 100})
				compare.Error(t, "claim", nil, err)
				if len(list) == 0 {
					return
				}
				mu.Lock()
				for _, c := range list {
					seen[c.ID]++
				}
				mu.Unlock()
			}
		})
		for id, times := range seen {
			compare.Equal(t, fmt.Sprintf("claims of delivery %s", id), 1, times)
		}
		stats := must.Get(s.deliveries.Stats(t.Context()))(t)
		compare.True(t, stats.Waiting == n && stats.Oldest >= 0, "stats: %+v", stats)
		s.exec(t, "UPDATE deliveries SET lease_until = '2000-01-01 00:00:00+00:00', due_at = '2000-01-01 00:00:00+00:00' WHERE lease_owner = 'worker-1'")
		taken := s.due(t, "worker-3")
		past := len(taken)
		must.Do(t, s.deliveries.Release(t.Context(), "worker-2", false))
		freed := s.due(t, "worker-3")
		compare.Equal(t, "taken over: want all of", n, past+len(freed))
		for _, c := range append(taken, freed...) {
			compare.Equal(t, "taken over, attempt", []any{true, 2}, []any{c.TakenOver, c.Attempt})
		}
	})
}

// No receiver exceeds its share, and those without deliveries in progress come first: with
// many deliveries to one address and few to others, each address has its turn.
func TestClaimIsFairBetweenReceivers(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		for _, to := range []string{"https://dead.example/a", "https://dead.example/b", "https://user:pw@DEAD.example/c", "https://dead.example/d", "https://dead.example:444/", "https://b.example", "https://c.example/x?y=z"} {
			in := ask(s.session(t).ID, "one")
			in.Webhook = &core.Webhook{URL: core.Target(to)}
			s.finish(t, s.accept(t, in).Run, "answer")
		}
		claim := func(c core.DeliveryClaim) map[string]int {
			t.Helper()
			c.Worker, c.Lease = worker, time.Minute
			list := must.Get(s.deliveries.Claim(t.Context(), c))(t)
			got := map[string]int{}
			for _, one := range list {
				got[one.Receiver]++
			}
			return got
		}
		for i, tt := range []struct {
			c    core.DeliveryClaim
			want map[string]int
		}{
			{core.DeliveryClaim{Limit: 3, Each: 2, Receivers: map[string]int{"c.example": 0, "dead.example:444": 0}}, map[string]int{"dead.example": 2, "b.example": 1}},
			{core.DeliveryClaim{Limit: 10, Each: 2, Receivers: map[string]int{"dead.example": 1}}, map[string]int{"dead.example": 1, "dead.example:444": 1, "c.example": 1}},
			{core.DeliveryClaim{Limit: 10, Each: 2}, map[string]int{"dead.example": 1}},
		} {
			compare.Equal(t, fmt.Sprintf("claim %d", i+1), tt.want, claim(tt.c))
		}
	})
}

// tellOf ends n runs of which a receiver is told.
func (s *store) tellOf(t *testing.T, receiver string, n int) {
	t.Helper()
	for range n {
		in := ask(s.session(t).ID, "one")
		in.Webhook = &core.Webhook{URL: core.Target("https://" + receiver + "/hook")}
		s.finish(t, s.accept(t, in).Run, "answer")
	}
}

// tryOnce claims a delivery and settles it as one that reached nobody, or arrived.
func (s *store) tryOnce(t *testing.T, reached bool) core.Delivery {
	t.Helper()
	list, err := s.deliveries.Claim(t.Context(), core.DeliveryClaim{Worker: worker, Lease: time.Minute, Limit: 1, Each: 1})
	must.True(t, err == nil && len(list) == 1, "claim: got %d, %v, want one", len(list), err)
	in := core.Settlement{ID: list[0].ID, Attempt: list[0].Attempt, State: core.DeliveryDelivered}
	if !reached {
		in.State, in.Unreached, in.Probes, in.Error, in.Wait = core.DeliveryPending, true, true, "the host does not exist", time.Hour
	}
	must.Get(s.deliveries.Settle(t.Context(), in))(t)
	return list[0]
}

// back puts what is stored of deliveries so many hours into the past.
func (s *store) back(t *testing.T, hours int) {
	t.Helper()
	column := func(name string) string {
		if s.Dialect() == "postgres" {
			return fmt.Sprintf("%s = %s - interval '%d hours'", name, name, hours)
		}
		return fmt.Sprintf("%s = strftime('%%Y-%%m-%%d %%H:%%M:%%f+00:00', %s, '-%d hours')", name, name, hours)
	}
	s.exec(t, "UPDATE deliveries SET "+column("since")+", "+column("due_at")+" WHERE state = 'pending'")
}

// giveUp abandons all deliveries that qualify, some at a time.
func (s *store) giveUp(t *testing.T, receiver string) (events []core.Event) {
	t.Helper()
	for {
		some := must.Get(s.deliveries.GiveUpReceiver(t.Context(), core.ReceiverGivenUp{Receiver: receiver, Age: 24 * time.Hour, Reason: "not reached for a day", Limit: 7}))(t)
		if events = append(events, some...); len(some) == 0 {
			return events
		}
	}
}

// Deliveries to a host that is gone wait for a day at most, though only one delivery at a
// time probes it: then they are abandoned and reported.
func TestADeadReceiverIsGivenUp(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.tellOf(t, "dead.example", 20)
		s.back(t, 12)
		probe := s.tryOnce(t, false)
		for range 4 {
			compare.Equal(t, "s.tryOnce(t, false).ID: want tried for all", probe.ID, s.tryOnce(t, false).ID)
		}
		compare.Equal(t, "after half a day: given up", 0, len(s.giveUp(t, "dead.example")))
		s.back(t, 11)
		s.tellOf(t, "dead.example", 3)
		s.tellOf(t, "fine.example", 2)
		s.back(t, 2)
		events := s.giveUp(t, "dead.example")
		compare.Equal(t, "after 25 hours: given up: want the 20 that wait for a day", 20, len(events))
		for _, e := range events {
			data := decode[core.DeliveryData](t, e)
			compare.True(t, e.Type == core.EventDeliveryUpdated && data.State == core.DeliveryFailed && data.Error != "", "told %s %+v, want delivery.updated, failed", e.Type, data)
			if stored := s.allEvents(t, e.SessionID); stored[len(stored)-1].Seq != e.Seq {
				t.Errorf("the session's last event is %+v, want the one that was told", stored[len(stored)-1])
			}
		}
		s.wantStates(t, map[string]int{"failed": 20, "pending": 5})
		s.back(t, 23) // the three that came later wait for a day now, too
		s.giveUp(t, "dead.example")
		s.wantStates(t, map[string]int{"failed": 23, "pending": 2})
	})
}

func (s *store) wantStates(t *testing.T, want map[string]int) {
	t.Helper()
	for state, n := range want {
		got := s.count(t, "SELECT COUNT(*) FROM deliveries WHERE state = ?", state)
		compare.True(t, got == n, "got %d %s, want %d", got, state, n)
	}
}
