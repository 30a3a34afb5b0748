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
