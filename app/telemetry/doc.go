// Package telemetry counts what Bobbin does, for Prometheus.
//
// Metrics is one registry with everything that is counted. Other parts do not
// know it: they declare small observer interfaces where they have something to
// tell, and app.go hands them the Metrics.
//
// # Labels
//
// Every combination of labels is a time series, so what a label can say is
// bounded: route templates, not paths; kinds of errors, not their words. No label
// is an id, an owner, a user, or any text that came from outside.
package telemetry
