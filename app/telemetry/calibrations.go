package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core/tokens"
)

// calibrations shows how far the estimates of tokens are right, at each scrape.
type calibrations struct {
	estimates func() map[string]tokens.Estimate
	labels    Labels

	factor, deviation, samples *prometheus.Desc
}

func newCalibrations(estimates func() map[string]tokens.Estimate, labels Labels) *calibrations {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, []string{"model"}, nil)
	}
	return &calibrations{
		estimates: estimates, labels: labels,
		factor:    desc("calibration_factor", "The model's tokens for one of cl100k_base, by which estimates are corrected."),
		deviation: desc("calibration_error_ratio", "How far corrected estimates are off, as a share of what the provider counts."),
		samples:   desc("calibration_samples", "Calls that the calibration rests on."),
	}
}

// Describe says what there is.
func (c *calibrations) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.factor
	ch <- c.deviation
	ch <- c.samples
}

// Collect shows each label's estimate; of several models under one label, that which
// rests on the most calls.
func (c *calibrations) Collect(ch chan<- prometheus.Metric) {
	estimates := c.estimates()
	best := map[string]tokens.Estimate{}
	for _, name := range slices.Sorted(maps.Keys(estimates)) {
		label := c.labels.model(name)
		if have, ok := best[label]; !ok || estimates[name].Samples > have.Samples {
			best[label] = estimates[name]
		}
	}
	for label, e := range best {
		ch <- prometheus.MustNewConstMetric(c.factor, prometheus.GaugeValue, e.Factor, label)
		ch <- prometheus.MustNewConstMetric(c.deviation, prometheus.GaugeValue, e.Deviation, label)
		ch <- prometheus.MustNewConstMetric(c.samples, prometheus.GaugeValue, float64(e.Samples), label)
	}
}
