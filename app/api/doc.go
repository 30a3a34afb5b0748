// Package api serves Bobbin over HTTP.
//
// A request passes through, in this order: request id, telemetry, access log, recovery
// from panics, security headers, CORS, the gate (below), the body limits, authentication,
// and its handler. routes.go holds all native routes. Handlers return errors; only
// errors.go writes them, as RFC 9457 problems.
//
// # Starting
//
// Until Options.Ready is closed, the server answers only probes and reports itself not
// ready; other requests wait at the gate for up to Limits.Start. Slack's requests pass: they are
// only stored.
//
// # Stopping
//
// When the context of Serve ends, the server is no longer ready, refuses new requests
// (503, to be retried), and ends the event streams of sessions, whose readers reconnect
// to another replica. Requests that wait for a run, and the streams of runs, continue
// until their run ends or Limits.Grace has passed; then the server closes their
// connections. A run never ends because its request did.
package api
