package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

// workMetrics are the metrics of leases and of work found by sweeps.
type workMetrics struct {
	renewals  *prometheus.CounterVec
	takeovers *prometheus.CounterVec
	finds     *prometheus.CounterVec
	refused   *prometheus.CounterVec
}

func newWorkMetrics() workMetrics {
	return workMetrics{
		renewals: newCounter("lease_renewals_total", "Lease renewals, by kind of work (run, summary) and outcome: renewed, lost (another process owns the work, "+
			"or it has ended), failed (the database did not respond).", "kind", "outcome"),
		takeovers: newCounter("takeovers_total", "Work taken over from another process, or from an earlier one of the same replica, by kind: run, summary, webhook.", "kind"),
		finds: newCounter("sweep_finds_total", "Work discovered by the sweep because no signal announced it: lapsed_run, queued_run, approval (not decided in time), webhook.",
			"work"),
		refused: newCounter("fenced_writes_total", "Writes refused because another process had taken over the work, by kind: run, webhook. For summaries see "+
			"bobbin_summary_commits_total.", "kind"),
	}
}

// allCollectors initializes the counters with 0, so that the first rare event shows as an
// increase.
func (m workMetrics) allCollectors() []prometheus.Collector {
	for _, kind := range []core.WorkKind{core.WorkRun, core.WorkSummary} {
		for _, outcome := range []string{"renewed", "lost", "failed"} {
			m.renewals.WithLabelValues(string(kind), outcome)
		}
		m.takeovers.WithLabelValues(string(kind))
	}
	for _, kind := range []string{string(core.WorkRun), string(core.DeliveryWebhook)} {
		m.refused.WithLabelValues(kind)
	}
	m.takeovers.WithLabelValues(string(core.DeliveryWebhook))
	for _, work := range []string{"lapsed_run", "queued_run", "approval", "webhook"} {
		m.finds.WithLabelValues(work)
	}
	return []prometheus.Collector{m.renewals, m.takeovers, m.finds, m.refused}
}

// Renewed counts a renewal of leases; err = none was renewed.
func (t *Telemetry) Renewed(kind core.WorkKind, renewed, lost int, err error) {
	if err != nil {
		t.work.renewals.WithLabelValues(string(kind), "failed").Inc()
		return
	}
	t.work.renewals.WithLabelValues(string(kind), "renewed").Add(float64(renewed))
	t.work.renewals.WithLabelValues(string(kind), "lost").Add(float64(lost))
}

// TookOver counts work that was taken over from another process.
func (t *Telemetry) TookOver(kind core.WorkKind, n int) {
	t.work.takeovers.WithLabelValues(string(kind)).Add(float64(n))
}

// Found counts work that a sweep discovered.
func (t *Telemetry) Found(what string, n int) {
	t.work.finds.WithLabelValues(what).Add(float64(n))
}

// Refused counts a write that came too late.
func (t *Telemetry) Refused(kind core.WorkKind) {
	t.work.refused.WithLabelValues(string(kind)).Inc()
}

// queueTime bounds a query of the database.
const queueTime = 2 * time.Second

// queue queries the database at each scrape; it exposes nothing if that fails.
type queue struct {
	stats          func(ctx context.Context) (core.QueueStats, error)
	length, oldest *prometheus.Desc
}

func newQueueCollector(stats func(ctx context.Context) (core.QueueStats, error)) prometheus.Collector {
	return &queue{stats: stats,
		length: prometheus.NewDesc(namespace+"_runs_queued", "Runs waiting for an earlier run of their session, in the whole database.", nil, nil),
		oldest: prometheus.NewDesc(namespace+"_runs_queued_oldest_age_seconds", "Time since the oldest of them was accepted; 0 = there is none.", nil, nil),
	}
}

// Describe sends the descriptions of the metrics.
func (q *queue) Describe(ch chan<- *prometheus.Desc) { ch <- q.length; ch <- q.oldest }

// Collect sends the current numbers.
func (q *queue) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTime)
	defer cancel()
	if s, err := q.stats(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(q.length, prometheus.GaugeValue, float64(s.Queued))
		ch <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, s.Oldest.Seconds())
	}
}

// retentionMetrics are the metrics of the retention.
type retentionMetrics struct {
	removed *prometheus.CounterVec
	sweeps  *prometheus.CounterVec
}

func newRetentionMetrics() retentionMetrics {
	return retentionMetrics{
		removed: newCounter("retention_removed_total", "Items removed because of their age: events, or archived sessions with everything in them.", "kind"),
		sweeps:  newCounter("retention_sweeps_total", "Retention sweeps, by outcome: done, failed.", "outcome"),
	}
}

func (m retentionMetrics) allCollectors() []prometheus.Collector {
	for _, kind := range []string{"events", "sessions"} { // 0 from the start
		m.removed.WithLabelValues(kind)
	}
	for _, outcome := range []string{"done", "failed"} {
		m.sweeps.WithLabelValues(outcome)
	}
	return []prometheus.Collector{m.removed, m.sweeps}
}

// Retained counts a sweep, and what it removed.
func (t *Telemetry) Retained(events, sessions int, err error) {
	t.retention.removed.WithLabelValues("events").Add(float64(events))
	t.retention.removed.WithLabelValues("sessions").Add(float64(sessions))
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	t.retention.sweeps.WithLabelValues(outcome).Inc()
}
