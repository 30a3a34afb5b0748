package telemetry

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

// workMetrics are the figures of leases, and of what nobody told of.
type workMetrics struct {
	renewals  *prometheus.CounterVec
	takeovers *prometheus.CounterVec
	finds     *prometheus.CounterVec
	refused   *prometheus.CounterVec
}

func newWorkMetrics() workMetrics {
	return workMetrics{
		renewals: counter("lease_renewals_total", "Leases that were to be lengthened, by kind of work (run, summary), and by outcome: renewed, lost (somebody else has the work now, "+
			"or it has ended), failed (calls that the database did not answer).", "kind", "outcome"),
		takeovers: counter("takeovers_total", "Work that was taken over from another process, or from an earlier one of the same name, by kind: run, summary, webhook.", "kind"),
		finds: counter("sweep_finds_total", "Work that the sweep found, since nobody had told of it: lapsed_run, queued_run, approval (nobody decided in time), webhook.",
			"work"),
		refused: counter("fenced_writes_total", "Writes that were refused because somebody else had taken the work over, by kind of work: run, webhook. For summaries see "+
			"bobbin_summary_commits_total.", "kind"),
	}
}

// all shows 0 from the start, so that the first of something rare is an increase.
func (m workMetrics) all() []prometheus.Collector {
	for _, kind := range []core.WorkKind{core.WorkRun, core.WorkSummary} {
		for _, outcome := range []string{"renewed", "lost", "failed"} {
			m.renewals.WithLabelValues(string(kind), outcome)
		}
		m.takeovers.WithLabelValues(string(kind))
	}
	m.refused.WithLabelValues(string(core.WorkRun))
	return []prometheus.Collector{m.renewals, m.takeovers, m.finds, m.refused}
}

// Renewed counts leases that were to be lengthened; err = none was.
func (t *Telemetry) Renewed(kind core.WorkKind, renewed, lost int, err error) {
	if err != nil {
		t.work.renewals.WithLabelValues(string(kind), "failed").Inc()
		return
	}
	t.work.renewals.WithLabelValues(string(kind), "renewed").Add(float64(renewed))
	t.work.renewals.WithLabelValues(string(kind), "lost").Add(float64(lost))
}

// TookOver counts work that another process had begun.
func (t *Telemetry) TookOver(kind core.WorkKind, n int) {
	t.work.takeovers.WithLabelValues(string(kind)).Add(float64(n))
}

// Found counts work that a sweep found.
func (t *Telemetry) Found(what string, n int) {
	t.work.finds.WithLabelValues(what).Add(float64(n))
}

// Refused counts a write that came too late.
func (t *Telemetry) Refused(kind core.WorkKind) {
	t.work.refused.WithLabelValues(string(kind)).Inc()
}

// queueTime bounds a question to the database.
const queueTime = 2 * time.Second

// queue asks the database at each scrape; it shows nothing when that fails.
type queue struct {
	stats          func(ctx context.Context) (core.QueueStats, error)
	length, oldest *prometheus.Desc
}

func queued(stats func(ctx context.Context) (core.QueueStats, error)) prometheus.Collector {
	return &queue{stats: stats,
		length: prometheus.NewDesc(namespace+"_runs_queued", "Runs that wait for the run before them in their session, in the whole database.", nil, nil),
		oldest: prometheus.NewDesc(namespace+"_runs_queued_oldest_age_seconds", "Time since the oldest of them was accepted; 0 = there is none.", nil, nil),
	}
}

// Describe says what there is.
func (q *queue) Describe(ch chan<- *prometheus.Desc) { ch <- q.length; ch <- q.oldest }

// Collect asks.
func (q *queue) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), queueTime)
	defer cancel()
	if s, err := q.stats(ctx); err == nil {
		ch <- prometheus.MustNewConstMetric(q.length, prometheus.GaugeValue, float64(s.Queued))
		ch <- prometheus.MustNewConstMetric(q.oldest, prometheus.GaugeValue, s.Oldest.Seconds())
	}
}
