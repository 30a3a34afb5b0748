package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

func newDeliveryTries() *prometheus.CounterVec {
	return counter("delivery_tries_total", "Tries of deliveries, by what became of the delivery: delivered, failed (it is not tried any more), pending (it is tried again).", "kind", "state")
}

// Delivery counts a try of a delivery.
func (t *Telemetry) Delivery(kind core.DeliveryKind, state core.DeliveryState) {
	t.deliveries.WithLabelValues(string(kind), string(state)).Inc()
}

// waitingDeliveries asks the database at each scrape; it shows nothing when that fails.
type waitingDeliveries struct {
	stats           func(ctx context.Context) (core.DeliveryStats, error)
	waiting, oldest *prometheus.Desc
}

func undelivered(stats func(ctx context.Context) (core.DeliveryStats, error)) prometheus.Collector {
	return &waitingDeliveries{stats: stats,
		waiting: prometheus.NewDesc(namespace+"_deliveries_waiting", "Deliveries that have not arrived and are still tried, in the whole database.", nil, nil),
		oldest:  prometheus.NewDesc(namespace+"_deliveries_oldest_age_seconds", "Time since the oldest of them was made; 0 = there is none.", nil, nil),
	}
}

// Describe says what there is.
func (w *waitingDeliveries) Describe(ch chan<- *prometheus.Desc) { ch <- w.waiting; ch <- w.oldest }

// Collect counts.
func (w *waitingDeliveries) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTime)
	defer cancel()
	if s, err := w.stats(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(s.Waiting))
		ch <- prometheus.MustNewConstMetric(w.oldest, prometheus.GaugeValue, s.Oldest.Seconds())
	}
}
