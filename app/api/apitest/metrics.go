package apitest

// Metrics is a metric with fixed values.
type Metrics struct{}

// Expose answers one metric in Prometheus' text format.
func (Metrics) Expose() (mediaType string, body []byte, err error) {
	const text = "# HELP bobbin_runs_active Runs of this process that have not ended.\n# TYPE bobbin_runs_active gauge\nbobbin_runs_active 1\n"
	return "text/plain; version=0.0.4; charset=utf-8", []byte(text), nil
}
