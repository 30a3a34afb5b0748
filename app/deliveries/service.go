package deliveries

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"bobbin/app/core"
)

// Intervals and timeouts. A lease outlives the longest try.
const (
	sweepEvery = 5 * time.Second // also finds deliveries that other processes created
	sendTime   = time.Minute     // of one try; senders have shorter limits
	leaseTime  = 2 * time.Minute
	storeTime  = 10 * time.Second // of one database call
)

// One receiver may take at most 1/receiverPart of the slots.
const receiverPart = 4

// When a delivery is retried, and when it is given up: after both minTries and minAge. For a
// receiver that cannot be reached, the tries of all its deliveries count.
const (
	minWait       = time.Second
	maxWait       = time.Hour
	maxRetryAfter = 3 * time.Hour // that a receiver may request by Retry-After
	minTries      = 8
	minAge        = 24 * time.Hour
	giveUpBatch   = 100 // deliveries in one transaction
)

// Options configure a Service. All are required but Signals and NewWork.
type Options struct {
	Store core.DeliveryStore
	// SendWebhook sends a delivery to its receiver (Sender.Send). Its errors are
	// core.DeliveryError, or internal.
	SendWebhook func(ctx context.Context, d core.Delivery) error
	Feed        core.Publisher
	Worker      string // names this process in leases (core.NewWorker)
	Concurrent  int    // concurrent deliveries in this process
	Grace       time.Duration
	Logger      *slog.Logger
	Observer    core.Observer
	Signals     core.Wakeups // nil = there are no other processes
	// NewWork holds an element when there may be new deliveries. Nil = only Wake and the sweep
	// say so.
	NewWork chan struct{}
}

// Service sends deliveries. Safe for concurrent use.
type Service struct {
	Options

	receivers *receivers
	moreWork  chan struct{} // holds one: a delivery may be due
	slots     chan struct{} // one element for each delivery in progress
}

// New returns a Service. It sends nothing before Run is called.
func New(o Options) *Service {
	if o.NewWork == nil {
		o.NewWork = make(chan struct{}, 1)
	}
	return &Service{
		Options: o, receivers: &receivers{maxEach: max(o.Concurrent/receiverPart, 1), busy: map[string]int{}, outages: map[string]*outage{}},
		moreWork: make(chan struct{}, 1), slots: make(chan struct{}, o.Concurrent),
	}
}

// Wake has the service check immediately for due deliveries, or another process if this one has
// no free slot. It returns immediately; without it the sweep finds them a little later.
func (s *Service) Wake() { core.Signal(s.NewWork) }

// Retry repeats a delivery immediately, with a fresh set of tries, whatever its state.
// ErrConflict while it is being delivered.
func (s *Service) Retry(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	d, events, err := s.Store.Retry(ctx, tenant, run, id)
	if err != nil {
		return core.Delivery{}, err
	}
	s.Feed.Publish(context.WithoutCancel(ctx), events)
	s.Wake()
	return d, nil
}

// Run sends deliveries until ctx ends. Then nothing new begins, deliveries in progress get the
// grace period, and unfinished ones are handed back. It returns nil after that. Call it once.
func (s *Service) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.releaseLeases(work, true) // what an earlier process of this replica had
	var sending, listening sync.WaitGroup
	if s.Signals != nil {
		listening.Go(func() {
			s.Signals.Listen(ctx, func(signal core.Wakeup) { // the sweep makes up for lost ones
				if signal.Due || signal.Free {
					core.Signal(s.moreWork)
				}
			})
		})
	}
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	swept := false
	for ctx.Err() == nil {
		for _, d := range s.claimDue(ctx, swept) {
			s.slots <- struct{}{} // claimDue claims no more than there are free slots
			s.receivers.mu.Lock()
			s.receivers.busy[d.Receiver]++
			s.receivers.mu.Unlock()
			sending.Go(func() {
				reached := s.tryDelivery(work, d)
				s.receivers.recordEnd(d.Receiver, reached)
				<-s.slots
				core.Signal(s.moreWork) // more may be due than there were slots
			})
		}
		select {
		case <-ctx.Done():
		case <-s.NewWork:
			swept = false
			if len(s.slots) == cap(s.slots) {
				s.notifyPeers(ctx)
			}
		case <-s.moreWork:
			swept = false
		case <-sweep.C:
			swept = true
		}
	}
	patience := time.AfterFunc(s.Grace, stop)
	sending.Wait()
	patience.Stop()
	s.releaseLeases(context.WithoutCancel(ctx), false)
	s.notifyPeers(context.WithoutCancel(ctx))
	listening.Wait()
	return nil
}

// notifyPeers notifies the other processes, if there are any, that there is more work than this
// process can do.
func (s *Service) notifyPeers(ctx context.Context) {
	if s.Signals != nil {
		s.Signals.Send(ctx, core.Wakeup{Due: true})
	}
}

func (s *Service) releaseLeases(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := s.Store.Release(ctx, s.Worker, all); err != nil {
		s.Logger.WarnContext(ctx, "deliveries not released", "err", err)
	}
}

// claimDue claims as many due deliveries as there are free slots. swept says that the sweep
// interval caused the call, not a signal.
func (s *Service) claimDue(ctx context.Context, swept bool) []core.Delivery {
	free := cap(s.slots) - len(s.slots)
	if free == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	list, err := s.Store.Claim(call, core.DeliveryClaim{
		Worker: s.Worker, Lease: leaseTime, Limit: free, Each: s.receivers.maxEach, Receivers: s.receivers.slotLimits(),
	})
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "deliveries not claimed", "err", err)
	}
	for _, d := range list {
		if d.TakenOver {
			s.Observer.Count(core.CountTakeovers, 1, string(d.Kind))
		} else if swept && d.Tries == 1 {
			s.Observer.Count(core.CountFound, 1, string(d.Kind))
		}
	}
	return list
}

// tryDelivery tries a delivery and stores the result. A try that was interrupted because the
// process stops is handed back. It reports whether the receiver was reached, as far as known.
func (s *Service) tryDelivery(work context.Context, d core.Delivery) (reached bool) {
	ctx, cancel := context.WithTimeout(work, sendTime)
	var err error = &core.DeliveryError{Reason: "this version of Bobbin does not know the kind " + string(d.Kind)} // a newer one also tries it
	if d.Kind == core.DeliveryWebhook {
		err = s.SendWebhook(ctx, d)
	}
	cancel()
	if err != nil && work.Err() != nil {
		return true
	}
	settled := s.settlementFor(d, err)
	ctx = context.WithoutCancel(work)
	s.storeSettlement(ctx, d, settled)
	if settled.Unreached && settled.State == core.DeliveryFailed { // it was tried for all
		s.giveUpReceiver(ctx, d)
	}
	return !settled.Unreached
}

// giveUpReceiver gives up what has waited for a day while a delivery to its receiver was tried.
func (s *Service) giveUpReceiver(ctx context.Context, d core.Delivery) {
	for {
		call, cancel := context.WithTimeout(ctx, storeTime)
		events, err := s.Store.GiveUpReceiver(call, core.ReceiverGivenUp{Receiver: d.Receiver, Age: minAge, Limit: giveUpBatch, Reason: "the receiver was not reached for a day"})
		cancel()
		if err != nil {
			s.Logger.WarnContext(ctx, "deliveries not given up", "receiver", d.Receiver, "err", err)
		}
		s.Feed.Publish(ctx, events)
		s.Observer.Count(core.CountDeliveries, len(events), string(d.Kind), string(core.DeliveryFailed))
		if len(events) > 0 {
			s.Logger.WarnContext(ctx, "receiver given up", "receiver", d.Receiver, "deliveries", len(events), "not_reached_for", minAge)
		}
		if len(events) < giveUpBatch {
			return
		}
	}
}

func (s *Service) storeSettlement(ctx context.Context, d core.Delivery, settled core.Settlement) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	events, err := s.Store.Settle(ctx, settled)
	if errors.Is(err, core.ErrStale) {
		s.Observer.Count(core.CountFenced, 1, string(d.Kind))
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "result of a delivery not stored", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		return
	}
	s.Observer.Count(core.CountDeliveries, 1, string(d.Kind), string(settled.State))
	s.Feed.Publish(ctx, events)
	if settled.State == core.DeliveryFailed {
		s.Logger.WarnContext(ctx, "delivery given up", "delivery_id", d.ID, "run_id", d.RunID, "kind", d.Kind, "attempt", d.Attempt, "reason", settled.Error)
	}
	if settled.State == core.DeliveryPending && settled.Wait < sweepEvery {
		time.AfterFunc(settled.Wait, func() { core.Signal(s.moreWork) })
	}
}

// settlementFor returns what a try's result means for the delivery.
func (s *Service) settlementFor(d core.Delivery, err error) core.Settlement {
	settled := core.Settlement{ID: d.ID, Attempt: d.Attempt, State: core.DeliveryDelivered}
	if err == nil {
		return settled
	}
	var failed *core.DeliveryError
	if !errors.As(err, &failed) {
		s.Logger.Error("delivery not tried", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		failed = &core.DeliveryError{Reason: "internal error"}
	}
	settled.Error, settled.Unreached = failed.Reason, failed.Unreached
	wait := maxWait
	if shift := 2 * (d.Tries - 1); shift < 12 { // 4^6 s are more than an hour
		wait = minWait << shift
	}
	wait = wait/2 + rand.N(wait/2+1) //nolint:gosec // no secret
	settled.Wait = max(max(wait.Round(time.Second), minWait), min(failed.RetryAfter, maxRetryAfter).Round(time.Second))
	s.receivers.mu.Lock()
	out := s.receivers.outages[d.Receiver]
	settled.State, settled.Probes = core.DeliveryPending, failed.Unreached && out != nil && out.failures+1 >= outageAfter // with this try
	s.receivers.mu.Unlock()
	timedOut := d.Tries >= minTries && time.Since(d.Since)+settled.Wait > minAge
	if failed.Final || timedOut {
		settled.State = core.DeliveryFailed
	}
	return settled
}

// A receiver that cannot be reached several times in a row, by any of its deliveries, is
// paused, and then tried with one delivery at a time until it responds.
const (
	outageAfter = 3 // tries in a row
	minPause    = 5 * time.Second
	maxPause    = time.Minute
	forgetAfter = 10 * time.Minute // an outage without any try since
)

// receivers tracks the deliveries in progress and the outages of receivers, so that one of them
// cannot take all slots. Safe for concurrent use.
type receivers struct {
	maxEach int // maximum of concurrent deliveries to one receiver

	mu      sync.Mutex
	busy    map[string]int     // guarded by mu; deliveries in progress
	outages map[string]*outage // guarded by mu
}

// outage is how long a receiver has not been reached.
type outage struct {
	failures int // in a row
	until    time.Time
}

// slotLimits returns how many more deliveries each receiver may get now, for receivers with a
// limit.
func (r *receivers) slotLimits() map[string]int {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	limits := make(map[string]int, len(r.busy))
	for name, n := range r.busy {
		limits[name] = max(r.maxEach-n, 0)
	}
	for name, o := range r.outages {
		switch {
		case now.Sub(o.until) > forgetAfter:
			delete(r.outages, name)
		case o.failures >= outageAfter && (now.Before(o.until) || r.busy[name] > 0):
			limits[name] = 0
		case o.failures >= outageAfter:
			limits[name] = 1
		}
	}
	return limits
}

// recordEnd records that a delivery has ended, and whether its receiver was reached.
func (r *receivers) recordEnd(name string, reached bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[name]--; r.busy[name] <= 0 {
		delete(r.busy, name)
	}
	if reached {
		delete(r.outages, name)
		return
	}
	o := r.outages[name]
	if o == nil {
		o = &outage{}
		r.outages[name] = o
	}
	o.failures++
	pause := maxPause
	if shift := o.failures - outageAfter; shift < 4 { // 5 s, 10 s, 20 s, 40 s, 60 s …
		pause = minPause << max(shift, 0)
	}
	o.until = time.Now().Add(pause)
}
