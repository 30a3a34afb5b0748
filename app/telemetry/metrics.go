package telemetry

import (
	"bytes"
	"database/sql"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
)

// namespace begins the name of every metric of our own.
const namespace = "bobbin"

// Build is which program is measured.
type Build struct {
	Version string
	Commit  string
	Go      string
}

// Options are what Metrics are made of.
type Options struct {
	Build    Build
	Database *sql.DB // whose pool is shown; nil = none
}

// Metrics is everything that is counted of one Bobbin. Safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	http     httpMetrics
}

// New returns metrics with a registry of their own.
func New(o Options) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), http: newHTTPMetrics()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(o.Build),
	)
	if o.Database != nil {
		m.registry.MustRegister(collectors.NewDBStatsCollector(o.Database, namespace))
	}
	m.registry.MustRegister(m.http.all()...)
	return m
}

// buildInfo is a constant 1 whose labels say which program this is.
func buildInfo(b Build) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Constant 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": b.Go},
	}, func() float64 { return 1 })
}

// Expose returns all metrics in Prometheus' text format, and its media type.
func (m *Metrics) Expose() (mediaType string, body []byte, err error) {
	families, err := m.registry.Gather()
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
