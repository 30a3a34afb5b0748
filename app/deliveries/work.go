package deliveries

import (
	"context"
	"errors"
	"sync"
	"time"

	"bobbin/app/core"
)

// Run delivers until ctx ends. Then nothing new begins, what is at work gets the
// grace period, and what is not finished is handed back. It returns nil when all
// that is done. Call it once.
func (s *Service) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.release(work, true) // what an earlier process of this replica had
	var sending, listening sync.WaitGroup
	listening.Go(func() { s.listen(ctx) })
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	swept := false
	for ctx.Err() == nil {
		for _, d := range s.claim(ctx, swept) {
			s.slots <- struct{}{} // claim leaves room for all
			s.receivers.begin(d.Receiver)
			sending.Go(func() {
				reached := s.deliver(work, d)
				s.receivers.end(d.Receiver, reached)
				<-s.slots
				s.look() // there may be more than there were slots
			})
		}
		select {
		case <-ctx.Done():
		case <-s.wake:
			swept = false
			if len(s.slots) == cap(s.slots) {
				s.tell(ctx)
			}
		case <-s.again:
			swept = false
		case <-sweep.C:
			swept = true
		}
	}
	s.drain(&sending, stop)
	s.release(context.WithoutCancel(ctx), false)
	s.tell(context.WithoutCancel(ctx))
	listening.Wait()
	return nil
}

// tell tells other processes, if there are any, that there is more than this one does.
func (s *Service) tell(ctx context.Context) {
	if s.Signals != nil {
		s.Signals.Send(ctx, core.Signal{Due: true})
	}
}

// listen hears of what others cannot do, until ctx ends. What is lost the sweep finds.
func (s *Service) listen(ctx context.Context) {
	for s.Signals != nil && ctx.Err() == nil {
		for signal, err := range s.Signals.Receive(ctx) {
			if err != nil {
				s.Logger.WarnContext(ctx, "other replicas not heard", "err", err)
				break
			}
			if signal.Due || signal.Free {
				s.look()
			}
		}
		select {
		case <-time.After(relisten):
		case <-ctx.Done():
		}
	}
}

// drain waits for what is at work, and breaks it off after the grace period.
func (s *Service) drain(sending *sync.WaitGroup, stop context.CancelFunc) {
	patience := time.AfterFunc(s.Grace, stop)
	defer patience.Stop()
	sending.Wait()
}

func (s *Service) release(ctx context.Context, all bool) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if err := s.Store.Release(ctx, s.Worker, all); err != nil {
		s.Logger.WarnContext(ctx, "deliveries not released", "err", err)
	}
}

// claim takes as many deliveries that are due as there are free slots, because of a
// wake-up or because it was time to look.
func (s *Service) claim(ctx context.Context, swept bool) []core.Delivery {
	free := cap(s.slots) - len(s.slots)
	if free == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	list, err := s.Store.Claim(call, core.DeliveryClaim{
		Worker: s.Worker, Lease: leaseTime, Limit: free, Each: s.receivers.each, Receivers: s.receivers.limits(),
	})
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "deliveries not claimed", "err", err)
	}
	for _, d := range list {
		if d.TakenOver {
			s.Observer.TookOver(core.WorkKind(d.Kind), 1)
		} else if swept && d.NextAt == nil {
			s.Observer.Found(string(d.Kind), 1)
		}
	}
	return list
}

// deliver tries a delivery and stores what came of it. One that was broken off,
// because the process stops, is left to be handed back. It reports whether the receiver
// was reached, as far as it knows.
func (s *Service) deliver(work context.Context, d core.Delivery) (reached bool) {
	ctx, cancel := context.WithTimeout(work, sendTime)
	err := s.send(ctx, d)
	cancel()
	if err != nil && work.Err() != nil {
		return true
	}
	s.settle(context.WithoutCancel(work), d, err)
	var failed *core.DeliveryError
	return !errors.As(err, &failed) || !failed.Unreached
}

// settle stores what came of a try.
func (s *Service) settle(ctx context.Context, d core.Delivery, err error) {
	settled := s.judge(d, err)
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	events, err := s.Store.Settle(ctx, settled)
	if errors.Is(err, core.ErrStale) {
		s.Observer.Refused(core.WorkKind(d.Kind))
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "delivery not settled", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		return
	}
	s.Observer.Delivery(d.Kind, settled.State)
	s.Feed.Publish(ctx, events)
	if settled.State == core.DeliveryFailed {
		s.Logger.WarnContext(ctx, "delivery given up", "delivery_id", d.ID, "run_id", d.RunID, "kind", d.Kind, "attempt", d.Attempt, "reason", settled.Error)
	}
	if settled.State == core.DeliveryPending && settled.Wait < sweepEvery {
		time.AfterFunc(settled.Wait, s.look)
	}
}

func (s *Service) send(ctx context.Context, d core.Delivery) error {
	sender, ok := s.senders[d.Kind]
	if !ok { // of a newer version of Bobbin, which tries it too
		return &core.DeliveryError{Reason: "this version of Bobbin does not know the kind " + string(d.Kind)}
	}
	return sender.Send(ctx, d)
}

// judge says what becomes of a delivery after a try.
func (s *Service) judge(d core.Delivery, err error) core.Settlement {
	settled := core.Settlement{ID: d.ID, Attempt: d.Attempt, State: core.DeliveryDelivered}
	if err == nil {
		return settled
	}
	var failed *core.DeliveryError
	if !errors.As(err, &failed) {
		s.Logger.Error("delivery not tried", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		failed = &core.DeliveryError{Reason: "internal error"}
	}
	settled.Error = failed.Reason
	settled.Wait = max(backoff(d.Tries), min(failed.RetryAfter, longestAsk).Round(time.Second))
	settled.State = core.DeliveryPending
	late := d.Tries >= leastTries && time.Since(d.Since)+settled.Wait > leastTime
	if failed.Final || late {
		settled.State = core.DeliveryFailed
	}
	return settled
}
