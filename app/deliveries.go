package app

import (
	"bobbin/app/deliveries"
	"bobbin/app/webhooks"
)

// buildDeliveries builds what tells others how runs end.
func (a *App) buildDeliveries() *deliveries.Service {
	return deliveries.New(deliveries.Options{
		Store: a.repos.deliveries, Feed: a.feed, Worker: a.worker, Concurrent: a.cfg.Webhooks.Concurrent, Grace: a.cfg.Limits.ShutdownGrace,
		Logger: a.log, Observer: a.telemetry,
		Webhooks: webhooks.New(webhooks.Options{
			Runs: a.repos.runs, Messages: a.repos.messages, Secret: a.cfg.Webhooks.Secret.Reveal(),
			AllowPrivate: a.cfg.Webhooks.AllowPrivate, Time: a.cfg.Webhooks.Time,
		}),
	})
}
