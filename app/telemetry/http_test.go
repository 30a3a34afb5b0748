package telemetry_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/telemetry"
)

// exposed returns the lines of the exposition that begin with the name.
func exposed(t *testing.T, m *telemetry.Metrics, name string) string {
	t.Helper()
	_, body, err := m.Expose()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, name) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}

// What a caller can make up does not become a label.
func TestRequestLabels(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	for _, r := range []struct {
		method, route string
		status        int
	}{
		{"GET", "/healthz", 200}, {"BREW", "", 405}, {"FETCH", "", 404}, {"GET", "/healthz", 0}, {"GET", "/healthz", 999}, {"POST", "/x", 499},
	} {
		_, ended := m.Request(t.Context(), r.method, r.route, http.Header{})
		ended(r.status, false)
	}
	want := `bobbin_http_requests_total{method="GET",route="/healthz",status="2xx"} 1
bobbin_http_requests_total{method="GET",route="/healthz",status="other"} 2
bobbin_http_requests_total{method="POST",route="/x",status="4xx"} 1
bobbin_http_requests_total{method="other",route="unmatched",status="4xx"} 2`
	if got := exposed(t, m, "bobbin_http_requests_total"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A stream is in flight as long as it is open, and is no slow request.
func TestStreamsAreNoSlowRequests(t *testing.T) {
	t.Parallel()
	m := telemetry.New(telemetry.Options{})
	ctx, ended := m.Request(context.Background(), "GET", "/s", nil)
	if ctx == nil {
		t.Fatal("got no context")
	}
	if got := exposed(t, m, "bobbin_http_requests_in_flight"); got != "bobbin_http_requests_in_flight 1" {
		t.Errorf("while it is open: got %q", got)
	}
	ended(200, true)
	if got := exposed(t, m, "bobbin_http_requests_in_flight"); got != "bobbin_http_requests_in_flight 0" {
		t.Errorf("when it is over: got %q", got)
	}
	if got := exposed(t, m, "bobbin_http_request_duration_seconds"); got != "" {
		t.Errorf("got durations of a stream: %q", got)
	}
}
