package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

func newDeliveryTries() *prometheus.CounterVec {
	tries := newCounter("delivery_tries_total", "Tries of deliveries, by the resulting state of the delivery: delivered, failed (given up; includes deliveries that were given up with their receiver without a try), pending (will be retried).", "kind", "state")
	for _, state := range []core.DeliveryState{core.DeliveryDelivered, core.DeliveryFailed, core.DeliveryPending} { // 0 from the start
		tries.WithLabelValues(string(core.DeliveryWebhook), string(state))
	}
	return tries
}

func newSlackReceived() *prometheus.CounterVec {
	return newCounter("slack_received_total", "What Slack sent, by type and outcome: stored, repeated (stored before), ignored (needs no handling), unknown (of a workspace in which the app is not installed), refused (a request with a wrong signature, too large or not understood), failed (the database; Slack sends it again).", "type", "outcome")
}

// SlackReceived counts what Slack sent.
func (t *Telemetry) SlackReceived(kind, outcome string) { t.slack.WithLabelValues(kind, outcome).Inc() }

// Delivery counts a try of a delivery, or a delivery that was given up without one.
func (t *Telemetry) Delivery(kind core.DeliveryKind, state core.DeliveryState) {
	t.deliveries.WithLabelValues(string(kind), string(state)).Inc()
}

// waitingDeliveries queries the database at each scrape; it exposes nothing if that fails.
type waitingDeliveries struct {
	stats           func(ctx context.Context) (core.DeliveryStats, error)
	waiting, oldest *prometheus.Desc
}

func newDeliveryCollector(stats func(ctx context.Context) (core.DeliveryStats, error)) prometheus.Collector {
	return &waitingDeliveries{stats: stats,
		waiting: prometheus.NewDesc(namespace+"_deliveries_waiting", "Deliveries that are still being tried, in the whole database, counted up to 10,000.", nil, nil),
		oldest:  prometheus.NewDesc(namespace+"_deliveries_oldest_age_seconds", "Age of the oldest of them; 0 = there is none.", nil, nil),
	}
}

// Describe sends the descriptions of the metrics.
func (w *waitingDeliveries) Describe(ch chan<- *prometheus.Desc) { ch <- w.waiting; ch <- w.oldest }

// Collect sends the current numbers.
func (w *waitingDeliveries) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTime)
	defer cancel()
	if s, err := w.stats(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(s.Waiting))
		ch <- prometheus.MustNewConstMetric(w.oldest, prometheus.GaugeValue, s.Oldest.Seconds())
	}
}

// slackBehind queries the database at each scrape; it exposes nothing if that fails.
type slackBehind struct {
	count  func(ctx context.Context) (int64, error)
	behind *prometheus.Desc
}

// Describe sends the description of the metric.
func (s *slackBehind) Describe(ch chan<- *prometheus.Desc) { ch <- s.behind }

// Collect sends the current number.
func (s *slackBehind) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTime)
	defer cancel()
	if n, err := s.count(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(s.behind, prometheus.GaugeValue, float64(n))
	}
}
