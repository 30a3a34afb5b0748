package repositories_test

import (
	"fmt"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
)

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
	if err != nil || len(list) != 1 {
		t.Fatalf("claim: got %d, %v, want one", len(list), err)
	}
	in := core.Settlement{ID: list[0].ID, Attempt: list[0].Attempt, State: core.DeliveryDelivered, Receiver: list[0].Receiver}
	if !reached {
		in.State, in.Unreached, in.Error, in.Wait = core.DeliveryPending, true, "the host does not exist", time.Hour
	}
	if _, err := s.deliveries.Settle(t.Context(), in); err != nil {
		t.Fatal(err)
	}
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
	s.exec(t, "UPDATE receiver_outages SET "+column("since"))
}

// giveUp abandons all deliveries that qualify, some at a time.
func (s *store) giveUp(t *testing.T, receiver string) (events []core.Event) {
	t.Helper()
	for {
		some, err := s.deliveries.GiveUpReceiver(t.Context(), core.ReceiverGivenUp{Receiver: receiver, Tries: 8, Age: 24 * time.Hour, Reason: "not reached for a day", Limit: 7})
		if err != nil {
			t.Fatal(err)
		}
		if events = append(events, some...); len(some) == 0 {
			return events
		}
	}
}

// Deliveries to a host that is gone wait for a day at most, though only one delivery at a
// time probes it: then they are abandoned and reported.
func TestADeadReceiverIsGivenUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		s.tellOf(t, "dead.example", 20)
		for range core.OutageAfter {
			s.tryOnce(t, false)
		}
		s.back(t, 12)
		probe := s.tryOnce(t, false)
		for range 4 {
			if got := s.tryOnce(t, false); got.ID != probe.ID {
				t.Errorf("got %s, want %s tried for all", got.ID, probe.ID)
			}
		}
		if early := s.giveUp(t, "dead.example"); len(early) != 0 {
			t.Errorf("after half a day: %d given up, want none", len(early))
		}
		s.back(t, 11)
		s.tellOf(t, "dead.example", 3)
		s.tellOf(t, "fine.example", 2)
		s.back(t, 2)
		s.exec(t, "UPDATE deliveries SET since = created_at, due_at = created_at WHERE attempt = 0 AND target LIKE '%fine%'")
		events := s.giveUp(t, "dead.example")
		if len(events) != 20 {
			t.Errorf("after 25 hours: %d given up, want the 20 that wait for a day", len(events))
		}
		for _, e := range events {
			data := decode[core.DeliveryData](t, e)
			if e.Type != core.EventDeliveryUpdated || data.State != core.DeliveryFailed || data.Error == "" {
				t.Errorf("told %s %+v, want delivery.updated, failed", e.Type, data)
			}
			if stored := s.allEvents(t, e.SessionID); stored[len(stored)-1].Seq != e.Seq {
				t.Errorf("the session's last event is %+v, want the one that was told", stored[len(stored)-1])
			}
		}
		s.wantStates(t, map[string]int{"failed": 20, "pending": 5})
		if none := s.giveUp(t, "fine.example"); len(none) != 0 {
			t.Errorf("%d given up of a receiver that was not tried", len(none))
		}
		s.back(t, 23) // the three that came later wait for a day now, too
		s.giveUp(t, "dead.example")
		s.wantStates(t, map[string]int{"failed": 23, "pending": 2})
		if n := s.count(t, "SELECT COUNT(*) FROM receiver_outages"); n != 0 {
			t.Errorf("got %d outages with nothing that waits, want none", n)
		}
	})
}

func (s *store) wantStates(t *testing.T, want map[string]int) {
	t.Helper()
	for state, n := range want {
		if got := s.count(t, "SELECT COUNT(*) FROM deliveries WHERE state = ?", state); got != n {
			t.Errorf("got %d %s, want %d", got, state, n)
		}
	}
}

// A receiver that answers in between starts a new count.
func TestAReceiverThatIsReachedIsNotGivenUp(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		s.tellOf(t, "slow.example", 5)
		for range 9 {
			s.tryOnce(t, false)
			s.exec(t, "UPDATE deliveries SET due_at = since WHERE state = 'pending'")
		}
		s.back(t, 20)
		s.tryOnce(t, true)
		s.tryOnce(t, false)
		s.back(t, 20)
		if events := s.giveUp(t, "slow.example"); len(events) != 0 {
			t.Errorf("%d given up, want none: it was reached 20 hours ago", len(events))
		}
		if n := s.count(t, "SELECT tries FROM receiver_outages"); n != 1 {
			t.Errorf("got %d tries since it was reached, want 1", n)
		}
	})
}
