package telemetry

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core/tokens"
)

// calibrations exposes the accuracy of token estimates at each scrape.
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
		factor:    desc("calibration_factor", "Tokens of the model per cl100k_base token; estimates are multiplied by it."),
		deviation: desc("calibration_error_ratio", "Error of corrected estimates, as a fraction of the provider's count."),
		samples:   desc("calibration_samples", "Calls that the calibration is based on."),
	}
}

// Describe sends the descriptions of the metrics.
func (c *calibrations) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.factor
	ch <- c.deviation
	ch <- c.samples
}

// Collect sends each label's estimate. If several models share a label, it is that of the model
// with the most samples.
func (c *calibrations) Collect(ch chan<- prometheus.Metric) {
	estimates := c.estimates()
	best := map[string]tokens.Estimate{}
	for _, name := range slices.Sorted(maps.Keys(estimates)) {
		label := c.labels.modelLabel(name)
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
