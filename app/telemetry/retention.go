package telemetry

import "github.com/prometheus/client_golang/prometheus"

// retentionMetrics are the figures of what is removed because of its age.
type retentionMetrics struct {
	removed *prometheus.CounterVec
	sweeps  *prometheus.CounterVec
}

func newRetentionMetrics() retentionMetrics {
	return retentionMetrics{
		removed: counter("retention_removed_total", "What was removed because of its age: events, or archived sessions with everything in them.", "kind"),
		sweeps:  counter("retention_sweeps_total", "Sweeps for what is old, by outcome: done, failed.", "outcome"),
	}
}

func (m retentionMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.removed, m.sweeps}
}

// Retained counts a sweep for what is old, and what it removed.
func (t *Telemetry) Retained(events, sessions int, err error) {
	t.retention.removed.WithLabelValues("events").Add(float64(events))
	t.retention.removed.WithLabelValues("sessions").Add(float64(sessions))
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	t.retention.sweeps.WithLabelValues(outcome).Inc()
}
