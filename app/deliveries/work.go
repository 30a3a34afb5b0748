package deliveries

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"bobbin/app/core"
)

// Run sends deliveries until ctx ends. Then nothing new begins, deliveries in progress get the
// grace period, and unfinished ones are handed back. It returns nil after that. Call it once.
func (s *Service) Run(ctx context.Context) error {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	s.releaseLeases(work, true) // what an earlier process of this replica had
	var sending, listening sync.WaitGroup
	if s.Signals != nil {
		listening.Go(func() { s.Signals.Listen(ctx, s.handleSignal) })
	}
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	swept := false
	for ctx.Err() == nil {
		for _, d := range s.claimDue(ctx, swept) {
			s.slots <- struct{}{} // claimDue claims no more than there are free slots
			s.receivers.recordStart(d.Receiver)
			sending.Go(func() {
				reached := s.tryDelivery(work, d)
				s.receivers.recordEnd(d.Receiver, reached)
				<-s.slots
				s.requestClaim() // more may be due than there were slots
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
	s.waitForSends(&sending, stop)
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

// handleSignal handles a signal of another process. The sweep makes up for lost ones.
func (s *Service) handleSignal(signal core.Wakeup) {
	if signal.Due || signal.Free {
		s.requestClaim()
	}
}

// waitForSends waits for deliveries in progress, and interrupts them after the grace period.
func (s *Service) waitForSends(sending *sync.WaitGroup, stop context.CancelFunc) {
	patience := time.AfterFunc(s.Grace, stop)
	defer patience.Stop()
	sending.Wait()
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
			s.Observer.TookOver(core.WorkKind(d.Kind), 1)
		} else if swept && d.Tries == 1 {
			s.Observer.Found(string(d.Kind), 1)
		}
	}
	return list
}

// tryDelivery tries a delivery and stores the result. A try that was interrupted because the
// process stops is handed back. It reports whether the receiver was reached, as far as known.
func (s *Service) tryDelivery(work context.Context, d core.Delivery) (reached bool) {
	ctx, cancel := context.WithTimeout(work, sendTime)
	err := s.sendByKind(ctx, d)
	cancel()
	if err != nil && work.Err() != nil {
		return true
	}
	settled := s.settlementFor(d, err)
	s.storeSettlement(context.WithoutCancel(work), d, settled)
	if settled.Unreached {
		ctx := context.WithoutCancel(work)
		total := 0
		for {
			call, cancel := context.WithTimeout(ctx, storeTime)
			events, err := s.Store.GiveUpReceiver(call, core.ReceiverGivenUp{
				Receiver: d.Receiver, Tries: minTries, Age: minAge, Limit: giveUpBatch,
				Reason: "the receiver was not reached for a day",
			})
			cancel()
			if err != nil {
				s.Logger.WarnContext(ctx, "deliveries not given up", "receiver", d.Receiver, "err", err)
			}
			s.Feed.Publish(ctx, events)
			for range events {
				s.Observer.Delivery(d.Kind, core.DeliveryFailed)
			}
			total += len(events)
			if len(events) < giveUpBatch {
				break
			}
		}
		if total > 0 {
			s.Logger.WarnContext(ctx, "receiver given up", "receiver", d.Receiver, "deliveries", total, "not_reached_for", minAge)
		}
	}
	return !settled.Unreached
}

// storeSettlement stores the result of a try.
func (s *Service) storeSettlement(ctx context.Context, d core.Delivery, settled core.Settlement) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	events, err := s.Store.Settle(ctx, settled)
	if errors.Is(err, core.ErrStale) {
		s.Observer.Refused(core.WorkKind(d.Kind))
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "result of a delivery not stored", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		return
	}
	s.Observer.Delivery(d.Kind, settled.State)
	s.Feed.Publish(ctx, events)
	if settled.State == core.DeliveryFailed {
		s.Logger.WarnContext(ctx, "delivery given up", "delivery_id", d.ID, "run_id", d.RunID, "kind", d.Kind, "attempt", d.Attempt, "reason", settled.Error)
	}
	if settled.State == core.DeliveryPending && settled.Wait < sweepEvery {
		time.AfterFunc(settled.Wait, s.requestClaim)
	}
}

func (s *Service) sendByKind(ctx context.Context, d core.Delivery) error {
	if d.Kind != core.DeliveryWebhook { // of a newer version of Bobbin, which also tries it
		return &core.DeliveryError{Reason: "this version of Bobbin does not know the kind " + string(d.Kind)}
	}
	return s.SendWebhook(ctx, d)
}

// settlementFor returns what a try's result means for the delivery.
func (s *Service) settlementFor(d core.Delivery, err error) core.Settlement {
	settled := core.Settlement{ID: d.ID, Attempt: d.Attempt, State: core.DeliveryDelivered, Receiver: d.Receiver}
	if err == nil {
		return settled
	}
	var failed *core.DeliveryError
	if !errors.As(err, &failed) {
		settled.Receiver = "" // it was not contacted
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
	settled.State = core.DeliveryPending
	timedOut := d.Tries >= minTries && time.Since(d.Since)+settled.Wait > minAge
	if failed.Final || timedOut {
		settled.State = core.DeliveryFailed
	}
	return settled
}
