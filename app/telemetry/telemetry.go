// Package telemetry provides metrics for Prometheus and traces for OpenTelemetry.
//
// Telemetry is one registry with all metrics. Other packages do not import it: they report to a
// core.Observer, and package wire passes them the Telemetry.
//
// # Labels
//
// Every combination of labels is a time series, so the values of labels are bounded: route
// templates, not paths; kinds of errors, not their texts. No label is an id, an owner, a user,
// or any text from outside.
package telemetry

import (
	"context"
	"database/sql"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
)

var _ core.Observer = (*Telemetry)(nil)

// Build identifies the program.
type Build struct {
	Version string
	Commit  string
	Go      string
}

// Options configure a Telemetry. Every field is optional.
type Options struct {
	Build    Build
	Database *sql.DB // whose connection pool is measured
	Labels   Labels
	// Queued counts the queued runs in the database.
	Queued func(ctx context.Context) (core.QueueStats, error)
	// Undelivered counts the deliveries that are still being tried.
	Undelivered func(ctx context.Context) (core.DeliveryStats, error)
	// SlackBehind counts the threads of Slack that lack posts because the last attempt to post failed.
	SlackBehind func(ctx context.Context) (int64, error)
	// Calibrations returns the token estimates by model name.
	Calibrations func() map[string]tokens.Estimate
	// NATS returns the state of the connection between replicas; nil = there is none.
	NATS func() core.NATSStats
}

// Telemetry counts what one Bobbin does, and records spans of it if Trace was called. Safe for
// concurrent use.
type Telemetry struct {
	instruments

	registry *prometheus.Registry
	labels   Labels

	provider *sdktrace.TracerProvider // nil = tracing is disabled
	tracer   trace.Tracer             // nil likewise

	mu       sync.Mutex
	requests map[core.RunID]trace.SpanContext // whose runs have not begun; guarded by mu
}

// New returns a Telemetry with its own registry.
func New(o Options) *Telemetry {
	r := prometheus.NewRegistry()
	in := instruments{map[string]*prometheus.CounterVec{}, map[string]*prometheus.GaugeVec{}, map[string]*prometheus.HistogramVec{}}
	for _, m := range metrics() {
		labels, zeros := strings.Fields(m.labels), m.zeros
		if len(labels) == 0 {
			zeros = []string{""}
		}
		var vec prometheus.Collector
		var start func(values ...string)
		switch {
		case m.scraped:
			continue
		case m.isCounter():
			c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: namespace + m.name, Help: m.help}, labels)
			in.counters[m.name], vec, start = c, c, func(values ...string) { c.WithLabelValues(values...) }
		case m.buckets != nil:
			h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: namespace + m.name, Help: m.help, Buckets: m.buckets}, labels)
			in.histograms[m.name], vec, start = h, h, func(values ...string) { h.WithLabelValues(values...) }
		default:
			g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: namespace + m.name, Help: m.help}, labels)
			in.gauges[m.name], vec, start = g, g, func(values ...string) { g.WithLabelValues(values...) }
		}
		for _, z := range zeros {
			start(strings.Fields(z)...)
		}
		r.MustRegister(vec)
	}
	t := &Telemetry{instruments: in, registry: r, labels: o.Labels, requests: map[core.RunID]trace.SpanContext{}}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: namespace + "build_info", Help: "Constant 1; the labels identify the program.",
			ConstLabels: prometheus.Labels{"version": o.Build.Version, "commit": o.Build.Commit, "go_version": o.Build.Go},
		}, func() float64 { return 1 }),
	)
	if o.Database != nil {
		r.MustRegister(collectors.NewDBStatsCollector(o.Database, "bobbin"))
	}
	t.addScraped(o)
	return t
}

// Handler answers all metrics in Prometheus' text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{DisableCompression: true})
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
		t.registry.MustRegister(scraper(query(o.Queued, func(s core.QueueStats, send sendValue) {
			send("runs_queued", float64(s.Queued))
			send("runs_queued_oldest_age_seconds", s.Oldest.Seconds())
		})))
	}
	if o.Undelivered != nil {
		t.registry.MustRegister(scraper(query(o.Undelivered, func(s core.DeliveryStats, send sendValue) {
			send("deliveries_waiting", float64(s.Waiting))
			send("deliveries_oldest_age_seconds", s.Oldest.Seconds())
		})))
	}
	if o.SlackBehind != nil {
		t.registry.MustRegister(scraper(query(o.SlackBehind, func(n int64, send sendValue) { send("slack_threads_behind", float64(n)) })))
	}
	if o.Calibrations != nil {
		t.registry.MustRegister(scraper(func(_ context.Context, send sendValue) {
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
		t.registry.MustRegister(scraper(func(_ context.Context, send sendValue) {
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
