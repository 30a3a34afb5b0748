package telemetry_test

import (
	"context"
	"net/http"
	"testing"
)

// What a caller can make up does not become a label.
func TestRequestLabels(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	for _, r := range []struct {
		method, route string
		status        int
	}{
		{"GET", "/healthz", 200}, {"BREW", "", 405}, {"FETCH", "", 404}, {"GET", "/healthz", 0}, {"GET", "/healthz", 999}, {"POST", "/x", 499},
	} {
		_, ended := tel.Request(t.Context(), r.method, r.route, http.Header{})
		ended(r.status, false)
	}
	want(t, tel, "bobbin_http_requests_total",
		`bobbin_http_requests_total{method="GET",route="/healthz",status="2xx"} 1`,
		`bobbin_http_requests_total{method="GET",route="/healthz",status="other"} 2`,
		`bobbin_http_requests_total{method="POST",route="/x",status="4xx"} 1`,
		`bobbin_http_requests_total{method="other",route="unmatched",status="4xx"} 2`)
	want(t, tel, "bobbin_http_request_duration_seconds_count",
		`bobbin_http_request_duration_seconds_count{method="GET",route="/healthz"} 3`,
		`bobbin_http_request_duration_seconds_count{method="POST",route="/x"} 1`,
		`bobbin_http_request_duration_seconds_count{method="other",route="unmatched"} 2`)
}

// A stream is in flight as long as it is open, and is no slow request.
func TestStreamsAreNoSlowRequests(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t)
	_, ended := tel.Request(context.Background(), "GET", "/s", nil)
	closed := tel.Stream()
	want(t, tel, "bobbin_http_requests_in_flight", "bobbin_http_requests_in_flight 1")
	want(t, tel, "bobbin_sse_streams_open", "bobbin_sse_streams_open 1")
	closed("slow")
	ended(200, true)
	want(t, tel, "bobbin_http_requests_in_flight", "bobbin_http_requests_in_flight 0")
	want(t, tel, "bobbin_sse_streams_open", "bobbin_sse_streams_open 0")
	want(t, tel, `bobbin_sse_streams_total{outcome="slow"}`, `bobbin_sse_streams_total{outcome="slow"} 1`)
	want(t, tel, "bobbin_sse_stream_duration_seconds_count", "bobbin_sse_stream_duration_seconds_count 1")
	want(t, tel, "bobbin_http_request_duration_seconds")
}
