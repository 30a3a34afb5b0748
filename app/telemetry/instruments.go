package telemetry

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace prefixes the name of every metric of our own.
const namespace = "bobbin"

// newCounter returns a counter whose name gets the prefix bobbin_.
func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// newGauge returns a gauge.
func newGauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// newHistogram returns a histogram.
func newHistogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// requestBuckets fit responses that are immediate or wait for a model. All times are in
// seconds.
func requestBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// modelBuckets fit waits for a model.
func modelBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
}

// toolBuckets fit tools, from calculations to remote calls.
func toolBuckets() []float64 {
	return []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60}
}

// tokenBuckets range from a line to the largest window, 64 to a million tokens.
func tokenBuckets() []float64 { return prometheus.ExponentialBuckets(64, 2, 15) }

// shareBuckets fit parts of a whole, finer near 1.
func shareBuckets() []float64 { return []float64{.1, .25, .4, .5, .6, .7, .8, .85, .9, .95, 1} }

// messageBuckets fit numbers of messages.
func messageBuckets() []float64 { return []float64{1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000} }

// other is the label of everything unknown.
const other = "other"

// Labels map names to labels. A name may come from outside: each function returns one of a
// bounded number of labels for any input. Without a function the label is "other".
type Labels struct {
	Model func(name string) string
	Agent func(name string) string
	Tool  func(name string) string
}

func (l Labels) modelLabel(name string) string { return boundedLabel(l.Model, name) }
func (l Labels) agentLabel(name string) string { return boundedLabel(l.Agent, name) }
func (l Labels) toolLabel(name string) string  { return boundedLabel(l.Tool, name) }

// boundedLabel returns the name's label as valid UTF-8, which Prometheus requires.
func boundedLabel(of func(string) string, name string) string {
	if of == nil {
		return other
	}
	return strings.ToValidUTF8(of(name), "\uFFFD")
}
