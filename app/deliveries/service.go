package deliveries

import (
	"context"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"

	"bobbin/app/core"
)

// The clocks of the work. A lease outlives the longest try.
const (
	sweepEvery = 5 * time.Second // also finds what other processes have written
	sendTime   = time.Minute     // of one try; senders have shorter limits of their own
	leaseTime  = 2 * time.Minute
	storeTime  = 10 * time.Second // of one call of the database
	relisten   = time.Second      // before other processes are listened to again
)

// receiverPart of the slots is the most that one receiver may take.
const receiverPart = 4

// When a delivery is tried again, and when it is given up: after both bounds.
const (
	firstWait   = time.Second
	longestWait = time.Hour
	longestAsk  = 3 * time.Hour // that a receiver may ask for by Retry-After
	leastTries  = 8
	leastTime   = 24 * time.Hour
)

// store keeps the deliveries.
type store interface {
	Claim(ctx context.Context, c core.DeliveryClaim) ([]core.Delivery, error)
	Settle(ctx context.Context, s core.Settlement) ([]core.Event, error)
	Release(ctx context.Context, worker string, all bool) error
	List(ctx context.Context, scope core.Scope, run core.RunID) ([]core.Delivery, error)
	Retry(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, []core.Event, error)
}

// sender brings deliveries of one kind to their receivers. Its errors are
// core.DeliveryError, or internal.
type sender interface {
	Send(ctx context.Context, d core.Delivery) error
}

// publisher tells watchers what was committed.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
}

// observer is told what came of each try, and how the work is kept (telemetry). It must
// not wait for anything.
type observer interface {
	Delivery(kind core.DeliveryKind, state core.DeliveryState)
	// TookOver is told of deliveries that another process, or an earlier one, had begun.
	TookOver(kind core.WorkKind, n int)
	// Found is told of deliveries that nobody had told of: the sweep found them.
	Found(what string, n int)
	// Refused is told of a result that came too late: somebody else has the delivery.
	Refused(kind core.WorkKind)
}

// silent is the observer of a Service that has none.
type silent struct{}

func (silent) Delivery(core.DeliveryKind, core.DeliveryState) {}
func (silent) TookOver(core.WorkKind, int)                    {}
func (silent) Found(string, int)                              {}
func (silent) Refused(core.WorkKind)                          {}

// signals wake other processes. What they say may be lost.
type signals interface {
	Send(ctx context.Context, signal core.Signal)
	// Receive yields what others send, until ctx ends or with an error as its last element.
	Receive(ctx context.Context) iter.Seq2[core.Signal, error]
}

// Options are what a Service is made of. All are required but Observer and Signals.
type Options struct {
	Store      store
	Webhooks   sender
	Feed       publisher
	Worker     string // names this process in leases: core.NewWorker
	Concurrent int    // deliveries at once in this process
	Grace      time.Duration
	Logger     *slog.Logger
	Observer   observer
	Signals    signals // nil = there are no other processes
}

// Service delivers. Safe for concurrent use.
type Service struct {
	Options

	senders   map[core.DeliveryKind]sender
	receivers *receivers
	wake      chan struct{} // holds one: something is due that is new
	again     chan struct{} // holds one: something may be due
	slots     chan struct{} // one element for each delivery at work
}

// New returns a Service. Nothing is delivered before Run is called.
func New(o Options) *Service {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	return &Service{
		Options: o, senders: map[core.DeliveryKind]sender{core.DeliveryWebhook: o.Webhooks},
		receivers: newReceivers(max(o.Concurrent/receiverPart, 1)),
		wake:      make(chan struct{}, 1), again: make(chan struct{}, 1), slots: make(chan struct{}, o.Concurrent),
	}
}

// Wake has the service look at once for what is due, or another process if this one
// can do no more. It returns at once; without it the sweep finds the same a little later.
func (s *Service) Wake() { remind(s.wake) }

// look has this process look for what is due.
func (s *Service) look() { remind(s.again) }

// remind has Run look.
func remind(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will look anyway
	}
}

// List returns the deliveries of a run in the order in which they were made.
func (s *Service) List(ctx context.Context, scope core.Scope, run core.RunID) ([]core.Delivery, error) {
	return s.Store.List(ctx, scope, run)
}

// Retry has a delivery made again at once, with all its tries before it, whatever
// became of it. ErrConflict while it is being delivered.
func (s *Service) Retry(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	d, events, err := s.Store.Retry(ctx, scope, run, id)
	if err != nil {
		return core.Delivery{}, err
	}
	s.Feed.Publish(context.WithoutCancel(ctx), events)
	s.Wake()
	return d, nil
}

// backoff is the time from a failed try to the next: four times as long after each,
// a part of it by chance, so that those which failed together do not come together.
func backoff(tries int) time.Duration {
	wait := longestWait
	if shift := 2 * (tries - 1); shift < 12 { // 4^6 s are more than an hour
		wait = firstWait << shift
	}
	wait = wait/2 + rand.N(wait/2+1) //nolint:gosec // no secret
	return max(wait.Round(time.Second), firstWait)
}
