// Package api serves Bobbin over HTTP.
//
// A request passes, in this order: a request id, the access log, the recovery
// from panics, the security headers, the gate (below), the limits of its body, auth,
// and its handler. routes.go holds all native routes. Handlers return errors; errors.go
// alone writes them, as RFC 9457 problems.
//
// # Starting
//
// Until Options.Ready is closed only probes are answered, and the server is not
// ready; other requests wait at the gate, for Limits.Start.
//
// # Stopping
//
// When the context of Serve ends, the server is no longer ready, refuses new
// requests (503, to be asked again), and ends the feeds of sessions, whose readers
// come back to another replica. Requests that wait for a run, and the streams of runs, go on until
// their run ends or Limits.Grace is over; then what is left is cut off. No run
// ends because its request did.
package api
