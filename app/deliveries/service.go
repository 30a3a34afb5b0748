package deliveries

import (
	"context"
	"log/slog"
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
