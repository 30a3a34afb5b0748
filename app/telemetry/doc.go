// Package telemetry provides metrics for Prometheus and traces for OpenTelemetry.
//
// Telemetry is one registry with all metrics. Other packages do not import it: they report to a
// core.Observer, and package wire passes them the Telemetry.
//
// # Labels
//
// Every combination of labels is a time series, so the values of labels are bounded: route
// templates, not paths; kinds of errors, not their texts. No label is an id, an owner, a user,
// or any text from outside.
package telemetry
