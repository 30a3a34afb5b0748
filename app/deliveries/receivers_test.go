package deliveries_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/deliveries"
)

// add puts deliveries to a receiver on the shelf, and returns them.
func (s *shelf) add(receiver string, n int) []core.DeliveryID {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []core.DeliveryID
	for id, d := range newShelf(n).rows {
		d.Receiver = receiver
		s.rows[id] = d
		ids = append(ids, id)
	}
	return ids
}

// arrived counts those of the deliveries that were delivered.
func (s *shelf) arrived(ids []core.DeliveryID) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.rows[id].State == core.DeliveryDelivered {
			n++
		}
	}
	return n
}

// byReceiver answers as the receiver does: "dead…" not within 15 s.
func byReceiver(_ context.Context, d core.Delivery) error {
	if d.Receiver[:4] != "dead" {
		return nil
	}
	<-time.After(15 * time.Second)
	return &core.DeliveryError{Reason: "the receiver did not answer in time", Unreached: true}
}

// An address that does not answer does not take the slots from others: what goes
// elsewhere is delivered meanwhile.
func TestDeadReceiverHarmsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(0), &sending{answer: byReceiver}
		dead := rows.add("dead.example", 100)
		service, stop := start(t, rows, s)
		defer stop()
		<-time.After(time.Second) // it has all that it gets
		others := append(rows.add("a.example", 20), rows.add("b.example", 20)...)
		service.Wake()
		synctest.Wait()
		if got := rows.arrived(others); got != 40 {
			t.Errorf("%d of 40 have arrived while another receiver does not answer", got)
		}
		if got := rows.arrived(dead); got != 0 || s.most > 12 {
			t.Errorf("%d have arrived at nobody, %d were at work at once", got, s.most)
		}
	})
}

// A receiver that is not there is asked less and less often, by one delivery at a time,
// and gets everything once it is back. An answer that is an error is no outage.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(0), &sending{answer: byReceiver}
		all := rows.add("dead.example", 200)
		_, stop := start(t, rows, s)
		defer stop()
		<-time.After(10 * time.Minute)
		if got := len(s.times()); got < 6 || got > 20 {
			t.Errorf("a receiver that is away was asked %d times in ten minutes", got)
		}
		s.from(func(context.Context, core.Delivery) error { return nil })
		<-time.After(2 * time.Minute)
		if got := rows.arrived(all); got < 180 { // the others wait for their next try
			t.Errorf("%d of %d have arrived after it came back", got, len(all))
		}
		s.from(failing(&core.DeliveryError{Reason: "status 500"}).answer)
		before := len(s.times())
		rows.add("sick.example", 50)
		<-time.After(6 * time.Second)
		if got := len(s.times()) - before; got < 50 {
			t.Errorf("a receiver that answers was asked %d times for 50 deliveries", got)
		}
	})
}

// wire is what processes tell each other.
type wire struct {
	sent chan core.Wakeup
	heed chan core.Wakeup
}

func (w *wire) Send(_ context.Context, signal core.Wakeup) { w.sent <- signal }

func (w *wire) Listen(ctx context.Context, handle func(core.Wakeup)) {
	for {
		select {
		case signal := <-w.heed:
			handle(signal)
		case <-ctx.Done():
			return
		}
	}
}

// A process whose slots are all taken notifies the others, and handles their signals
// immediately, not at the next sweep; when it stops it announces that work may be left.
func TestDeliveriesBetweenProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(0), &sending{answer: byReceiver}
		w := &wire{sent: make(chan core.Wakeup, 10), heed: make(chan core.Wakeup)}
		service := deliveries.New(deliveries.Options{
			Store: rows, SendWebhook: s.Send, Feed: s, Worker: "w", Concurrent: 2, Grace: time.Minute, Logger: slog.New(slog.DiscardHandler), Observer: s, Signals: w,
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service.Run(ctx) }()
		synctest.Wait()
		told := rows.add("a.example", 1)
		begin := time.Now()
		w.heed <- core.Wakeup{Cancel: "r"} // not ours
		w.heed <- core.Wakeup{Due: true}
		synctest.Wait()
		if rows.arrived(told) != 1 || time.Since(begin) != 0 {
			t.Error("what another process told of was not delivered at once")
		}
		rows.add("dead-1", 1)
		rows.add("dead-2", 1)
		service.Wake()
		synctest.Wait()
		if len(w.sent) != 0 {
			t.Error("the others were told though there was room")
		}
		service.Wake()
		if got := <-w.sent; !got.Due {
			t.Errorf("got signal %+v, want that something may be due", got)
		}
		cancel()
		if err := <-done; err != nil || !(<-w.sent).Due {
			t.Errorf("got %v, want the others told when it stops", err)
		}
	})
}

// queue is a shelf of one receiver that claims the oldest that are due first, and knows
// since when the receiver was not reached, as the database does.
type queue struct {
	*shelf

	tries int // since the receiver was reached; of mu, like since
	since time.Time
}

func (q *queue) Claim(_ context.Context, c core.DeliveryClaim) ([]core.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	most, limited := c.Receivers["dead.example"]
	if !limited {
		most = c.Each
	}
	var list []core.Delivery
	for _, d := range q.oldest() {
		if len(list) >= min(most, c.Limit) {
			break
		}
		if past(d.NextAt) && past(d.LeaseUntil) {
			until := time.Now().Add(c.Lease)
			d.Attempt, d.Tries, d.LeaseOwner, d.LeaseUntil = d.Attempt+1, d.Tries+1, c.Worker, &until
			list = append(list, *d)
		}
	}
	return list, nil
}

// oldest returns what is pending.
func (q *queue) oldest() []*core.Delivery {
	var list []*core.Delivery
	for _, d := range q.rows {
		if d.State == core.DeliveryPending {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(a, b *core.Delivery) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list
}

func (q *queue) Settle(ctx context.Context, r core.Settlement) ([]core.Event, error) {
	events, err := q.shelf.Settle(ctx, r)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.Unreached {
		q.tries = 0
		return events, err
	}
	if q.tries++; q.tries == 1 {
		q.since = time.Now()
	}
	if q.tries >= core.OutageAfter {
		q.rows[r.ID].NextAt = nil
	}
	return events, err
}

func (q *queue) GiveUpReceiver(_ context.Context, in core.ReceiverGivenUp) ([]core.Event, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var events []core.Event
	if q.tries < in.Tries || time.Since(q.since) < in.Age {
		return nil, nil
	}
	for _, d := range q.oldest() {
		if len(events) < in.Limit && time.Since(d.Since) >= in.Age {
			d.State, d.Error = core.DeliveryFailed, in.Reason
			events = append(events, d.Updated())
		}
	}
	return events, nil
}

// A host is permanently gone, with deliveries of hundreds of runs: none waits much longer than a
// day, and each that is given up is reported and counted, though most were never tried.
func TestDeadReceiverKeepsNoBacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const atOnce, times = 24, 4 // more at once than are sent at once
		store := &queue{shelf: newShelf(0)}
		s := failing(&core.DeliveryError{Reason: "the host does not exist", Unreached: true})
		service := deliveries.New(deliveries.Options{
			Store: store, SendWebhook: s.Send, Feed: s, Observer: s, Worker: "w", Concurrent: 16, Grace: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- service.Run(ctx) }()
		for range times {
			store.add("dead.example", atOnce)
			service.Wake()
			<-time.After(12*time.Hour + 5*time.Minute)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		var pending, failed int
		for _, d := range store.all() {
			if d.State == core.DeliveryFailed {
				failed++
				continue
			}
			pending++
			if age := time.Since(d.CreatedAt); age > 24*time.Hour+2*time.Minute {
				t.Fatalf("one waits for %s", age)
			}
		}
		if pending != atOnce || failed != atOnce*(times-1) {
			t.Errorf("got %d given up and %d that wait, want all but the last %d given up", failed, pending, atOnce)
		}
		if together := len(s.states) - len(s.times()); len(s.events) != failed || together < failed/2 {
			t.Errorf("told of %d, %d of them given up together, want all %d told of and most of them together", len(s.events), together, failed)
		}
	})
}
