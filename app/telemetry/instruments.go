package telemetry

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// instruments are the metrics that are counted as things happen, by name.
type instruments struct {
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

// add adds to a counter.
func (in instruments) add(name string, n float64, labels ...string) {
	in.counters[name].WithLabelValues(labels...).Add(n)
}

// gauge returns a gauge.
func (in instruments) gauge(name string, labels ...string) prometheus.Gauge {
	return in.gauges[name].WithLabelValues(labels...)
}

// observe adds a value to a histogram.
func (in instruments) observe(name string, value float64, labels ...string) {
	in.histograms[name].WithLabelValues(labels...).Observe(value)
}

// scrapeTime bounds a query of the database.
const scrapeTime = 2 * time.Second

// sendValue sends the value of a metric that is scraped.
type sendValue func(name string, value float64, labels ...string)

// scraper reads metrics at each scrape: those of the table whose names have the prefix.
type scraper struct {
	read  func(ctx context.Context, send sendValue)
	descs map[string]*prometheus.Desc
}

func newScraper(prefix string, read func(ctx context.Context, send sendValue)) *scraper {
	s := &scraper{read, map[string]*prometheus.Desc{}}
	for _, m := range metrics() {
		if m.scraped && strings.HasPrefix(m.name, prefix) {
			s.descs[m.name] = prometheus.NewDesc(namespace+m.name, m.help, strings.Fields(m.labels), nil)
		}
	}
	return s
}

// Describe sends the descriptions of the metrics.
func (s *scraper) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.descs {
		ch <- d
	}
}

// Collect sends the current values.
func (s *scraper) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	s.read(ctx, func(name string, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if (metric{name: name}).isCounter() {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(s.descs[name], kind, value, labels...)
	})
}

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

// boundedLabel returns the name's label as valid UTF-8, which Prometheus requires.
func boundedLabel(of func(string) string, name string) string {
	if of == nil {
		return other
	}
	return strings.ToValidUTF8(of(name), "\uFFFD")
}
