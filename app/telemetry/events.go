package telemetry

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
)

// eventMetrics are the figures of how events get to those who watch.
type eventMetrics struct {
	fanOut   *prometheus.HistogramVec
	watchers *prometheus.GaugeVec
	slow     *prometheus.CounterVec
	resyncs  *prometheus.CounterVec
	found    *prometheus.CounterVec
}

func newEventMetrics() eventMetrics {
	return eventMetrics{
		fanOut:   histogram("event_fan_out_seconds", "From an event to a watcher that hears of it by the bus, by the clocks of both processes.", fanOutBuckets()),
		watchers: gauge("watchers_open", "Watchers of events in this process: event streams, and requests that wait for a run."),
		slow:     counter("watchers_slow_total", "Watchers that were dropped because they were too far behind; they come back and miss nothing."),
		resyncs:  counter("event_resyncs_total", "Watchers that were told to load the messages, as the events they asked for are not kept."),
		found:    counter("events_found_total", "Events that watchers read from the database, as the bus had not brought them, or not in time."),
	}
}

// fanOutBuckets are for what takes no time in one process, and little between two.
func fanOutBuckets() []float64 {
	return []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
}

// all shows 0 from the start, so that the first of something rare is an increase.
func (m eventMetrics) all() []prometheus.Collector {
	m.watchers.WithLabelValues()
	for _, c := range []*prometheus.CounterVec{m.slow, m.resyncs, m.found} {
		c.WithLabelValues()
	}
	return []prometheus.Collector{m.fanOut, m.watchers, m.slow, m.resyncs, m.found}
}

// FanOut counts an event that a watcher heard of, so long after it happened.
func (t *Telemetry) FanOut(late time.Duration) {
	t.events.fanOut.WithLabelValues().Observe(max(late, 0).Seconds())
}

// Watching counts a watcher that begins. The caller calls left once, with why it ended.
func (t *Telemetry) Watching() (left func(err error)) {
	open := t.events.watchers.WithLabelValues()
	open.Inc()
	return func(err error) {
		open.Dec()
		var told *core.Error
		if errors.As(err, &told) && told.Code == core.CodeSlowReader {
			t.events.slow.WithLabelValues().Inc()
		}
	}
}

// Resync counts a watcher that cannot be given what it asked for.
func (t *Telemetry) Resync() { t.events.resyncs.WithLabelValues().Inc() }

// EventsFound counts events that were in the database and had not come by the bus.
func (t *Telemetry) EventsFound(events int) { t.events.found.WithLabelValues().Add(float64(events)) }

// NATS are figures of what joins the replicas, as they are now.
type NATS struct {
	Connected  bool
	Routes     int    // connections to other replicas, of their own cluster
	Reconnects uint64 // to the server
	Slow       uint64 // times that messages came faster than they were taken, and some were lost
	In, Out    uint64 // messages
}

// natsCollector asks at each scrape.
type natsCollector struct {
	stats                                         func() NATS
	connected, routes, reconnects, slow, messages *prometheus.Desc
}

func newNATS(stats func() NATS) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(namespace+"_nats_"+name, help, labels, nil)
	}
	return &natsCollector{
		stats:      stats,
		connected:  desc("connected", "1 while this process is connected to NATS, else 0."),
		routes:     desc("routes", "Connections to other replicas, of the replicas' own cluster; 0 with a cluster of others."),
		reconnects: desc("reconnects_total", "Times that the connection to NATS was made again."),
		slow:       desc("slow_total", "Times that messages of other replicas came faster than they were taken, and some were lost; watchers look into the database then."),
		messages:   desc("messages_total", "Messages from (in) and to (out) other replicas: events, live text, wake-ups.", "direction"),
	}
}

// Describe says what there is.
func (n *natsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{n.connected, n.routes, n.reconnects, n.slow, n.messages} {
		ch <- d
	}
}

// Collect asks.
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
