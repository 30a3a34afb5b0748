package telemetry

import "github.com/prometheus/client_golang/prometheus"

// namespace begins the name of every metric of our own.
const namespace = "bobbin"

// counter returns a counter of the name, to which bobbin_ is added.
func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// gauge returns a gauge.
func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

// histogram returns a histogram.
func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// requestBuckets are for what answers at once or after a model has spoken, in
// seconds, as are all times.
func requestBuckets() []float64 {
	return []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
}

// modelBuckets are for what waits for a model.
func modelBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
}

// toolBuckets are for tools: some calculate, some ask the other end of the world.
func toolBuckets() []float64 {
	return []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60}
}

// tokenBuckets are from a line to the largest window, 64 to a million tokens.
func tokenBuckets() []float64 { return prometheus.ExponentialBuckets(64, 2, 15) }

// shareBuckets are for parts of a whole; what matters is near it.
func shareBuckets() []float64 { return []float64{.1, .25, .4, .5, .6, .7, .8, .85, .9, .95, 1} }

// messageBuckets are for numbers of messages.
func messageBuckets() []float64 { return []float64{1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000} }
