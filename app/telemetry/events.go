package telemetry

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

// eventMetrics are the metrics of event delivery.
type eventMetrics struct {
	fanOut   *prometheus.HistogramVec
	watchers *prometheus.GaugeVec
	slow     *prometheus.CounterVec
	resyncs  *prometheus.CounterVec
	found    *prometheus.CounterVec
}

func newEventMetrics() eventMetrics {
	return eventMetrics{
		fanOut:   newHistogram("event_fan_out_seconds", "Delay between an event and its arrival at a watcher over the bus, by the clocks of both processes.", fanOutBuckets()),
		watchers: newGauge("watchers_open", "Watchers of events in this process: event streams, and requests that wait for a run."),
		slow:     newCounter("watchers_slow_total", "Watchers that were dropped because they were too far behind; they reconnect and miss nothing."),
		resyncs:  newCounter("event_resyncs_total", "Watchers told to reload because their events had expired."),
		found:    newCounter("events_found_total", "Events that watchers read from the database because the bus had not delivered them in time."),
	}
}

// fanOutBuckets fit delays that are tiny within a process and small between two.
func fanOutBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// allCollectors initializes the counters with 0, so that the first rare event shows as an
// increase.
func (m eventMetrics) allCollectors() []prometheus.Collector {
	m.watchers.WithLabelValues()
	m.fanOut.WithLabelValues()
	for _, c := range []*prometheus.CounterVec{m.slow, m.resyncs, m.found} {
		c.WithLabelValues()
	}
	return []prometheus.Collector{m.fanOut, m.watchers, m.slow, m.resyncs, m.found}
}

// FanOut records the delay between an event and its arrival at a watcher.
func (t *Telemetry) FanOut(delay time.Duration) {
	t.events.fanOut.WithLabelValues().Observe(max(delay, 0).Seconds())
}

// Watching counts a watcher that begins. The caller calls left once, with the error that ended
// it.
func (t *Telemetry) Watching() (left func(err error)) {
	open := t.events.watchers.WithLabelValues()
	open.Inc()
	return func(err error) {
		open.Dec()
		var e *core.Error
		if errors.As(err, &e) && e.Code == core.CodeSlowReader {
			t.events.slow.WithLabelValues().Inc()
		}
	}
}

// Resync counts a watcher whose events are no longer available.
func (t *Telemetry) Resync() { t.events.resyncs.WithLabelValues().Inc() }

// EventsFound counts events that were read from the database because the bus had not delivered
// them.
func (t *Telemetry) EventsFound(events int) { t.events.found.WithLabelValues().Add(float64(events)) }

// NATS is the current state of the connection between replicas.
type NATS struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages arrived faster than they were read, and some were lost
	In, Out    uint64 // messages
}

// natsCollector reads the state at each scrape.
type natsCollector struct {
	stats                                         func() NATS
	connected, routes, reconnects, slow, messages *prometheus.Desc
}

func newNATSCollector(stats func() NATS) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_nats_"+name, help, labels, nil)
	}
	return &natsCollector{
		stats:      stats,
		connected:  desc("connected", "1 while this process is connected to NATS, else 0."),
		routes:     desc("routes", "Connections to other replicas in the replicas' own cluster; 0 with an external cluster."),
		reconnects: desc("reconnects_total", "Reconnects to NATS."),
		slow:       desc("slow_total", "Times that messages of other replicas arrived faster than they were read, and some were lost; watchers then read the database."),
		messages:   desc("messages_total", "Messages from (in) and to (out) other replicas: events, partial text, wake-ups.", "direction"),
	}
}

// Describe sends the descriptions of the metrics.
func (n *natsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{n.connected, n.routes, n.reconnects, n.slow, n.messages} {
		ch <- d
	}
}

// Collect sends the current state.
func (n *natsCollector) Collect(ch chan<- prometheus.Metric) {
	s, connected := n.stats(), 0.0
	if s.Connected {
		connected = 1
	}
	ch <- prometheus.MustNewConstMetric(n.connected, prometheus.GaugeValue, connected)
	ch <- prometheus.MustNewConstMetric(n.routes, prometheus.GaugeValue, float64(s.Routes))
	ch <- prometheus.MustNewConstMetric(n.reconnects, prometheus.CounterValue, float64(s.Reconnects))
	ch <- prometheus.MustNewConstMetric(n.slow, prometheus.CounterValue, float64(s.Slow))
	ch <- prometheus.MustNewConstMetric(n.messages, prometheus.CounterValue, float64(s.In), "in")
	ch <- prometheus.MustNewConstMetric(n.messages, prometheus.CounterValue, float64(s.Out), "out")
}
