package telemetry

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/tokens"
)

// Build is which program is measured.
type Build struct {
	Version string
	Commit  string
	Go      string
}

// Options are what a Telemetry is made of. Every field may be left out.
type Options struct {
	Build    Build
	Database *sql.DB // whose pool is shown
	Labels   Labels
	// Queued counts the runs that wait for their turn, in the database.
	Queued func(ctx context.Context) (core.QueueStats, error)
	// Undelivered counts the deliveries that are still tried, likewise.
	Undelivered func(ctx context.Context) (core.DeliveryStats, error)
	// Calibrations returns how the models count, by their names.
	Calibrations func() map[string]tokens.Estimate
	// NATS returns what joins the replicas; nil = nothing does.
	NATS func() NATS
}

// Telemetry counts what one Bobbin does, and makes spans of it if Trace was called.
// Safe for concurrent use.
type Telemetry struct {
	registry   *prometheus.Registry
	labels     Labels
	http       httpMetrics
	streams    streamMetrics
	context    contextMetrics
	summaries  summaryMetrics
	models     modelMetrics
	runs       runMetrics
	tools      toolMetrics
	deliveries *prometheus.CounterVec
	retention  retentionMetrics
	work       workMetrics
	events     eventMetrics

	provider *sdktrace.TracerProvider // nil = no spans are made
	tracer   trace.Tracer             // nil likewise
	links    *links
}

// New returns a Telemetry with a registry of its own.
func New(o Options) *Telemetry {
	t := &Telemetry{
		registry: prometheus.NewRegistry(), labels: o.Labels,
		http: newHTTPMetrics(), streams: newStreamMetrics(), context: newContextMetrics(), summaries: newSummaryMetrics(),
		models: newModelMetrics(), runs: newRunMetrics(), tools: newToolMetrics(), deliveries: newDeliveryTries(), retention: newRetentionMetrics(), work: newWorkMetrics(), events: newEventMetrics(), links: newLinks(),
	}
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(o.Build),
	)
	if o.Database != nil {
		t.registry.MustRegister(collectors.NewDBStatsCollector(o.Database, namespace))
	}
	if o.Queued != nil {
		t.registry.MustRegister(queued(o.Queued))
	}
	if o.Undelivered != nil {
		t.registry.MustRegister(undelivered(o.Undelivered))
	}
	if o.Calibrations != nil {
		t.registry.MustRegister(newCalibrations(o.Calibrations, o.Labels))
	}
	if o.NATS != nil {
		t.registry.MustRegister(newNATS(o.NATS))
	}
	for _, group := range [][]prometheus.Collector{
		t.http.all(), t.streams.all(), t.context.all(), t.summaries.all(), t.models.all(), t.runs.all(), t.tools.all(), {t.deliveries}, t.retention.all(), t.work.all(), t.events.all(),
	} {
		t.registry.MustRegister(group...)
	}
	return t
}

// buildInfo is a constant 1 whose labels say which program this is.
func buildInfo(b Build) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Constant 1; the labels say which program this is.",
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
