package app

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/deliveries"
	"bobbin/app/events"
	"bobbin/app/webhooks"
)

// buildDeliveries builds what tells others how runs end.
func (a *App) buildDeliveries() *deliveries.Service {
	o := deliveries.Options{
		Store: a.repos.deliveries, Feed: a.feed, Worker: a.worker, Concurrent: a.cfg.Webhooks.Concurrent, Grace: a.cfg.Limits.ShutdownGrace,
		Logger: a.log, Observer: a.telemetry,
		Webhooks: webhooks.New(webhooks.Options{
			Runs: a.repos.runs, Messages: a.repos.messages, Secret: a.cfg.Webhooks.Secret.Reveal(),
			AllowPrivate: a.cfg.Webhooks.AllowPrivate, Time: a.cfg.Webhooks.Time,
		}),
	}
	if a.cfg.NATS.Shared() {
		o.Signals = events.NewSignals(a.bus, a.log)
	}
	return deliveries.New(o)
}

// outlet is the feed, and wakes the deliveries when something was committed that is to
// be told outside, whatever part of Bobbin did it.
type outlet struct {
	*events.Feed

	wake func()
}

func (a *App) outlet() outlet {
	return outlet{a.feed, func() {
		if a.outbox != nil { // a stage has none: nobody is told of what is played on it
			a.outbox.Wake()
		}
	}}
}

// Publish tells the watchers, and wakes the deliveries.
func (o outlet) Publish(ctx context.Context, list []core.Event) {
	o.Feed.Publish(ctx, list)
	for _, e := range list {
		if isTold(e.Type) {
			o.wake()
			return
		}
	}
}

// isTold reports whether webhooks are told of events of the type.
func isTold(t core.EventType) bool {
	switch t {
	case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled, core.EventRunWaiting:
		return true
	default:
		return false
	}
}
