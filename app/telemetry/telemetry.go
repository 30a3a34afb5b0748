package telemetry

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
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
	NATS func() NATS
}

// Telemetry counts what one Bobbin does, and records spans of it if Trace was called. Safe for
// concurrent use.
type Telemetry struct {
	instruments

	registry *prometheus.Registry
	labels   Labels

	provider *sdktrace.TracerProvider // nil = tracing is disabled
	tracer   trace.Tracer             // nil likewise
	links    *links
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
	t := &Telemetry{instruments: in, registry: r, labels: o.Labels, links: newLinks()}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(o.Build),
	)
	if o.Database != nil {
		r.MustRegister(collectors.NewDBStatsCollector(o.Database, "bobbin"))
	}
	t.addScraped(o)
	return t
}

// buildInfo is a constant 1 whose labels identify the program.
func buildInfo(b Build) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: namespace + "build_info", Help: "Constant 1; the labels identify the program.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": b.Go},
	}, func() float64 { return 1 })
}

// Expose returns all metrics in Prometheus' text format, and its media type.
func (t *Telemetry) Expose() (mediaType string, body []byte, err error) {
	families, err := t.registry.Gather()
	if err != nil {
		return "", nil, fmt.Errorf("gather metrics: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	var buf bytes.Buffer
	enc := expfmt.NewEncoder(&buf, format)
	for _, family := range families {
		if err := enc.Encode(family); err != nil {
			return "", nil, fmt.Errorf("encode metric %s: %w", family.GetName(), err)
		}
	}
	return string(format), buf.Bytes(), nil
}
