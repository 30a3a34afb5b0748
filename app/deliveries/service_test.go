package deliveries_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/deliveries"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// shelf keeps deliveries in memory, as the database does, by the clock of the test.
type shelf struct {
	core.DeliveryStore

	mu       sync.Mutex
	rows     map[core.DeliveryID]*core.Delivery
	released int
	broken   error        // answer of Settle, once
	gone     []core.Event // of deliveries that are given up with their receiver
}

func newShelf(n int) *shelf {
	s := &shelf{rows: map[core.DeliveryID]*core.Delivery{}}
	for range n {
		id := core.NewID[core.DeliveryID]()
		s.rows[id] = &core.Delivery{ID: id, Kind: core.DeliveryWebhook, State: core.DeliveryPending, Since: time.Now(), CreatedAt: time.Now()}
	}
	return s
}

func past(t *time.Time) bool { return t == nil || !t.After(time.Now()) }

func (s *shelf) Claim(_ context.Context, c core.DeliveryClaim) ([]core.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []core.Delivery
	given := map[string]int{}
	for _, d := range s.rows {
		most, limited := c.Receivers[d.Receiver]
		if !limited {
			most = c.Each
		}
		if given[d.Receiver] < most && len(list) < c.Limit && d.State == core.DeliveryPending && past(d.NextAt) && past(d.LeaseUntil) {
			given[d.Receiver]++
			until := time.Now().Add(c.Lease)
			taken := d.LeaseOwner != ""
			d.Attempt, d.Tries, d.LeaseOwner, d.LeaseUntil = d.Attempt+1, d.Tries+1, c.Worker, &until
			list = append(list, *d)
			list[len(list)-1].TakenOver = taken
		}
	}
	return list, nil
}

func (s *shelf) Settle(_ context.Context, r core.Settlement) ([]core.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.rows[r.ID]
	if err := s.broken; err != nil {
		s.broken = nil
		return nil, err
	}
	if d.Attempt != r.Attempt || d.State != core.DeliveryPending {
		return nil, core.ErrStale
	}
	d.State, d.Error, d.LeaseOwner, d.LeaseUntil, d.NextAt = r.State, r.Error, "", nil, nil
	if r.State == core.DeliveryPending {
		if next := time.Now().Add(r.Wait); !r.Probes {
			d.NextAt = &next
		}
		return nil, nil
	}
	return []core.Event{d.Updated()}, nil
}

// GiveUpReceiver gives up what is in gone, whose receiver the database would know.
func (s *shelf) GiveUpReceiver(_ context.Context, in core.ReceiverGivenUp) (events []core.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Age != 24*time.Hour || in.Reason == "" {
		return nil, fmt.Errorf("got %+v, want what is due for a day", in)
	}
	n := min(in.Limit, len(s.gone))
	events, s.gone = s.gone[:n], s.gone[n:]
	return events, nil
}

func (s *shelf) Release(_ context.Context, worker string, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.rows {
		if d.LeaseOwner == worker && d.LeaseUntil != nil {
			d.LeaseUntil = nil
			s.released++
		}
	}
	return nil
}

func (s *shelf) List(context.Context, core.Tenant, core.RunID) ([]core.Delivery, error) {
	return s.all(), nil
}

func (s *shelf) ListAll(context.Context, core.Tenant, core.DeliveryQuery) (core.Page[core.Delivery], error) {
	return core.Page[core.Delivery]{Items: s.all()}, nil
}

func (s *shelf) Retry(_ context.Context, _ core.Tenant, _ core.RunID, id core.DeliveryID) (core.Delivery, []core.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.rows[id]
	if d == nil {
		return core.Delivery{}, nil, core.ErrNotFound
	}
	d.State, d.Tries, d.Since, d.NextAt = core.DeliveryPending, 0, time.Now(), nil
	return *d, []core.Event{d.Updated()}, nil
}

func (s *shelf) all() []core.Delivery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []core.Delivery
	for _, d := range s.rows {
		list = append(list, *d)
	}
	return list
}

// sending is a sender, and a feed, that note what they were given.
type sending struct {
	core.Publisher
	core.NoObserver
	mu     sync.Mutex
	answer func(ctx context.Context, d core.Delivery) error
	at     []time.Time
	events []core.Event
	states []core.DeliveryState
	told   []string
	busy   int
	most   int // at once
}

func (s *sending) Send(ctx context.Context, d core.Delivery) error {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	s.busy++
	s.most = max(s.most, s.busy)
	answer := s.answer
	s.mu.Unlock()
	err := answer(ctx, d)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	return err
}

func (s *sending) Publish(_ context.Context, events []core.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, events...)
}

func (s *sending) Count(counter core.Counter, n int, labels ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counter == core.CountDeliveries {
		s.states = append(s.states, slices.Repeat([]core.DeliveryState{core.DeliveryState(labels[1])}, n)...)
	} else {
		s.told = append(s.told, fmt.Sprint(counter, labels, n))
	}
}

// from changes what is answered from now on.
func (s *sending) from(answer func(ctx context.Context, d core.Delivery) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *sending) times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at)
}

func start(t *testing.T, rows *shelf, s *sending) (service *deliveries.Service, stop func()) {
	t.Helper()
	service = deliveries.New(deliveries.Options{
		Store: rows, SendWebhook: s.Send, Feed: s, Worker: "w", Concurrent: 12, Grace: time.Minute, Logger: slog.New(slog.DiscardHandler), Observer: s,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx) }()
	return service, func() {
		cancel()
		compare.Error(t, "run", nil, <-done)
	}
}

func failing(e *core.DeliveryError) *sending {
	return &sending{answer: func(context.Context, core.Delivery) error { return e }}
}

// Waiting deliveries are sent, to one receiver at most a quarter of the slots concurrently, and
// each is reported.
func TestDelivers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows := newShelf(10)
		s := &sending{answer: func(context.Context, core.Delivery) error {
			<-time.After(time.Second)
			return nil
		}}
		_, stop := start(t, rows, s)
		<-time.After(time.Minute)
		stop()
		for _, d := range rows.all() {
			compare.Equal(t, "state, attempt", []any{core.DeliveryDelivered, 1}, []any{d.State, d.Attempt})
		}
		compare.Equal(t, "most at once, events, states", []any{3, 10, 10}, []any{s.most, len(s.events), len(s.states)})
	})
}

// A receiver that never answers well is asked over a day and eight times at least,
// less and less often, and then given up.
func TestBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(1), failing(&core.DeliveryError{Reason: "no"})
		_, stop := start(t, rows, s)
		<-time.After(72 * time.Hour)
		stop()
		at := s.times()
		if d := rows.all()[0]; d.State != core.DeliveryFailed || d.Error != "no" || len(at) < 24 {
			t.Fatalf("got %+v after %d tries, want it given up after a day", d, len(at))
		}
		if first, whole := at[1].Sub(at[0]), at[len(at)-1].Sub(at[0]); first > 10*time.Second || whole < 22*time.Hour || whole > 24*time.Hour {
			t.Errorf("the first wait is %s, all of them %s", first, whole)
		}
		for i := 1; i < len(at); i++ {
			wait := at[i].Sub(at[i-1])
			compare.True(t, wait >= time.Second && wait <= time.Hour+10*time.Second, "wait %d is %s", i, wait)
		}
	})
}

// A receiver decides when it wants to be asked again, or that it does not; a person
// may ask again after that.
func TestReceiverDecides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(1), failing(&core.DeliveryError{Reason: "later", RetryAfter: 2 * time.Hour})
		service, stop := start(t, rows, s)
		defer stop()
		<-time.After(3 * time.Hour)
		at := s.times()
		compare.True(t, len(at) == 2 && at[1].Sub(at[0]) >= 2*time.Hour, "asked at %v, want twice, two hours apart", at)
		s.from(failing(&core.DeliveryError{Reason: "gone", Final: true}).answer)
		<-time.After(48 * time.Hour)
		d := rows.all()[0]
		compare.Equal(t, "state, tries", []any{core.DeliveryFailed, 3}, []any{d.State, d.Attempt})
		s.from(func(context.Context, core.Delivery) error { return nil })
		must.Get(service.Retry(t.Context(), core.Tenant{}, "", d.ID))(t)
		<-time.After(time.Second)
		compare.Equal(t, "state after it is asked again", core.DeliveryDelivered, must.Get(service.Store.List(t.Context(), core.Tenant{}, ""))(t)[0].State)
		compare.Error(t, "retry of nothing", core.ErrNotFound, compare.ErrorOf(service.Retry(t.Context(), core.Tenant{}, "", "none")))
	})
}

// What a process sent without storing it is sent again, as the same delivery; a
// fault of ours is no end of it either.
func TestSentAndNotStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows, s := newShelf(1), &sending{answer: func(context.Context, core.Delivery) error { return nil }}
		rows.broken = errors.New("the database is gone")
		_, stop := start(t, rows, s)
		<-time.After(time.Second)
		stop() // hands the lease back
		s.from(func(_ context.Context, d core.Delivery) error {
			if d.Attempt == 2 {
				return errors.New("a fault")
			}
			return nil
		})
		_, stop = start(t, rows, s)
		<-time.After(time.Minute)
		stop()
		if d := rows.all()[0]; d.State != core.DeliveryDelivered || d.Attempt != 3 || rows.released != 1 || len(s.events) != 1 || !slices.Equal(s.states, []core.DeliveryState{core.DeliveryPending, core.DeliveryDelivered}) {
			t.Errorf("got %+v, %d released, %d events, counted %v", d, rows.released, len(s.events), s.states)
		}
		want := []string{"takeovers_total[webhook] 1"}
		compare.True(t, slices.Equal(s.told, want), "told %q, want %q", s.told, want)
	})
}

// A stop waits for what is at work, and hands back what does not end; an unknown
// kind is kept for a version that knows it.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows := newShelf(2)
		rows.rows[rows.all()[0].ID].Kind = "pigeon"
		s := &sending{answer: func(ctx context.Context, _ core.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		_, stop := start(t, rows, s)
		<-time.After(10 * time.Second)
		began := time.Now()
		stop()
		waited := time.Since(began)
		compare.True(t, waited <= time.Minute, "the stop took %s", waited)
		for _, d := range rows.all() {
			compare.True(t, d.State == core.DeliveryPending && d.LeaseUntil == nil, "got %+v, want it handed back", d)
		}
	})
}

// The sweep finds deliveries that no signal announced, and a result that comes too late is
// refused: both are counted.
func TestFoundAndRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rows := newShelf(0)
		s := &sending{answer: func(context.Context, core.Delivery) error {
			rows.mu.Lock()
			defer rows.mu.Unlock()
			for _, d := range rows.rows {
				d.Attempt++ // another process has it
			}
			return nil
		}}
		_, stop := start(t, rows, s)
		<-time.After(time.Second)
		for id, d := range newShelf(1).rows {
			rows.mu.Lock()
			rows.rows[id] = d
			rows.mu.Unlock()
		}
		<-time.After(5 * time.Second)
		stop()
		want := []string{"sweep_finds_total[webhook] 1", "fenced_writes_total[webhook] 1"}
		compare.Equal(t, fmt.Sprintf("told %q events and none", s.told), []any{true, 0}, []any{slices.Equal(s.told, want), len(s.events)})
	})
}
