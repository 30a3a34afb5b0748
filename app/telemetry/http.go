package telemetry

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// unmatched is the route of requests for paths that nothing is at, and other the
// label of what is not one of a known few.
const (
	unmatched = "unmatched"
	other     = "other"
)

// httpMetrics are the figures of HTTP.
type httpMetrics struct {
	inFlight prometheus.Gauge
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newHTTPMetrics() httpMetrics {
	return httpMetrics{
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: "http", Name: "requests_in_flight",
			Help: "Requests that are being answered, open event streams included.",
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Subsystem: "http", Name: "requests_total",
			Help: "Requests that were answered, by route template, method and class of status.",
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: "http", Name: "request_duration_seconds",
			Help:    "Time to answer a request, event streams left out.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"route", "method"}),
	}
}

func (m httpMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.inFlight, m.requests, m.duration}
}

// Request counts a request that begins. The caller goes on with the context, and
// calls ended once, with the status of the answer and whether it was an event
// stream. Route is a template such as /api/v1/sessions/:id, empty for a path that
// nothing is at.
func (m *Metrics) Request(ctx context.Context, method, route string, _ http.Header) (context.Context, func(status int, stream bool)) {
	start := time.Now()
	method = knownMethod(method)
	if route == "" {
		route = unmatched
	}
	m.http.inFlight.Inc()
	return ctx, func(status int, stream bool) {
		m.http.inFlight.Dec()
		m.http.requests.WithLabelValues(route, method, statusClass(status)).Inc()
		if !stream {
			m.http.duration.WithLabelValues(route, method).Observe(time.Since(start).Seconds())
		}
	}
}

// statusClass returns 2xx, 4xx …
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return other
	}
	return strconv.Itoa(status/100) + "xx"
}

// knownMethod returns the method, or other for one that a caller made up.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	default:
		return other
	}
}
