package deliveries_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/deliveries"
	"bobbin/tests/compare"
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
		compare.Equal(t, "arrived while another receiver does not answer", 40, rows.arrived(others))
		got := rows.arrived(dead)
		compare.True(t, got == 0 && s.most <= 12, "%d have arrived at nobody, %d were at work at once", got, s.most)
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
		got := len(s.times())
		compare.True(t, got >= 6 && got <= 20, "a receiver that is away was asked %d times in ten minutes", got)
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
		compare.Equal(t, "what another process told of is delivered at once", []any{1, time.Duration(0)}, []any{rows.arrived(told), time.Since(begin)})
		rows.add("dead-1", 1)
		rows.add("dead-2", 1)
		service.Wake()
		synctest.Wait()
		compare.Equal(t, "the others were told though there was room", 0, len(w.sent))
		service.Wake()
		got := <-w.sent
		compare.True(t, got.Due, "got signal %+v, want that something may be due", got)
		cancel()
		if err := <-done; err != nil || !(<-w.sent).Due {
			t.Errorf("got %v, want the others told when it stops", err)
		}
	})
}

// When a delivery was tried for a day and reached nobody, what waits for its receiver is given up with
// it, reported and counted, however much it is; not when the receiver is reached, or was tried less.
func TestGivenUpTogether(t *testing.T) {
	t.Parallel()
	const many = 250
	for _, tt := range []struct {
		unreached bool
		since     time.Duration // when it began, before the first try that this process makes
		not, by   time.Duration // it is given up after not, and by then
		want      int
	}{{true, 0, 20 * time.Hour, 25 * time.Hour, many + 1}, {false, 0, 20 * time.Hour, 25 * time.Hour, 1}, {true, 30 * time.Hour, 10 * time.Second, 4 * time.Hour, many + 1}} {
		synctest.Test(t, func(t *testing.T) {
			rows, s := newShelf(1), failing(&core.DeliveryError{Reason: "the host does not exist", Unreached: tt.unreached})
			for _, d := range rows.rows {
				d.Since = d.Since.Add(-tt.since)
			}
			rows.gone = slices.Repeat([]core.Event{rows.all()[0].Updated()}, many)
			_, stop := start(t, rows, s)
			<-time.After(tt.not)
			compare.Equal(t, "reported before it was tried for long", 0, len(s.events))
			<-time.After(tt.by - tt.not)
			stop()
			failed := slices.DeleteFunc(s.states, func(state core.DeliveryState) bool { return state != core.DeliveryFailed })
			compare.Equal(t, "reported and counted", []int{tt.want, tt.want}, []int{len(s.events), len(failed)})
		})
	}
}
