package telemetry

import (
	"context"
	"maps"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
)

// NATS is the current state of the connection between replicas.
type NATS struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages arrived faster than they were read, and some were lost
	In, Out    uint64 // messages
}

// query returns what reads values from the database, and exposes nothing if that fails.
func query[T any](read func(context.Context) (T, error), send func(T, sendValue)) func(context.Context, sendValue) {
	return func(ctx context.Context, s sendValue) {
		if v, err := read(ctx); err == nil {
			send(v, s)
		}
	}
}

// addScraped registers the metrics that are read at each scrape, as far as the options have them.
func (t *Telemetry) addScraped(o Options) {
	if o.Queued != nil {
		t.registry.MustRegister(newScraper("runs_", query(o.Queued, func(s core.QueueStats, send sendValue) {
			send("runs_queued", float64(s.Queued))
			send("runs_queued_oldest_age_seconds", s.Oldest.Seconds())
		})))
	}
	if o.Undelivered != nil {
		t.registry.MustRegister(newScraper("deliveries_", query(o.Undelivered, func(s core.DeliveryStats, send sendValue) {
			send("deliveries_waiting", float64(s.Waiting))
			send("deliveries_oldest_age_seconds", s.Oldest.Seconds())
		})))
	}
	if o.SlackBehind != nil {
		t.registry.MustRegister(newScraper("slack_", query(o.SlackBehind, func(n int64, send sendValue) { send("slack_threads_behind", float64(n)) })))
	}
	if o.Calibrations != nil {
		t.registry.MustRegister(newScraper("calibration_", func(_ context.Context, send sendValue) {
			estimates := o.Calibrations()
			best := map[string]tokens.Estimate{}
			for _, name := range slices.Sorted(maps.Keys(estimates)) {
				label := t.labels.modelLabel(name)
				if have, ok := best[label]; !ok || estimates[name].Samples > have.Samples {
					best[label] = estimates[name]
				}
			}
			for label, e := range best {
				send("calibration_factor", e.Factor, label)
				send("calibration_error_ratio", e.Deviation, label)
				send("calibration_samples", float64(e.Samples), label)
			}
		}))
	}
	if o.NATS != nil {
		t.registry.MustRegister(newScraper("nats_", func(_ context.Context, send sendValue) {
			s, connected := o.NATS(), 0.0
			if s.Connected {
				connected = 1
			}
			send("nats_connected", connected)
			send("nats_routes", float64(s.Routes))
			send("nats_reconnects_total", float64(s.Reconnects))
			send("nats_slow_total", float64(s.Slow))
			send("nats_messages_total", float64(s.In), "in")
			send("nats_messages_total", float64(s.Out), "out")
		}))
	}
}
