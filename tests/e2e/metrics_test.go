package e2e_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db/dbtest"
)

// exposition is what a server exposes, by the name of the metric.
type exposition map[string]*dto.MetricFamily

// scrape reads the metrics as Prometheus does, with its own parser.
func scrape(t testing.TB, c *client.Client) exposition {
	t.Helper()
	text, err := c.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("the exposition cannot be read: %v\n%s", err, text)
	}
	return families
}

// sum adds up the series of a metric that have the labels, each name=value: the
// values of counters and gauges, the counts of histograms.
func (e exposition) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, m := range e[name].GetMetric() {
		if !labeled(m, labels) {
			continue
		}
		total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return total
}

// labeled reports whether the series has all the labels.
func labeled(m *dto.Metric, labels []string) bool {
	have := map[string]bool{}
	for _, l := range m.GetLabel() {
		have[l.GetName()+"="+l.GetValue()] = true
	}
	for _, l := range labels {
		if !have[l] {
			return false
		}
	}
	return true
}

// want fails the test unless the metric's series with the labels add up to want.
func (e exposition) want(t testing.TB, want float64, name string, labels ...string) {
	t.Helper()
	if got := e.sum(name, labels...); got != want {
		t.Errorf("%s%v: got %v, want %v", name, labels, got, want)
	}
}

// The metrics are Prometheus' text format and count requests by route template,
// never by path.
func TestMetricsAreExposed(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := newHouse(t, url)
		id := newSession(t, h.Client, core.Session{})
		session(t, h.Client, id)
		session(t, h.Client, id)
		if _, err := h.Session(t.Context(), core.NewID[core.SessionID]()); err == nil {
			t.Error("a session that does not exist was found")
		}
		m := scrape(t, h.Client)
		const route = "route=/api/v1/sessions/:id"
		m.want(t, 2, "bobbin_http_requests_total", route, "method=GET", "status=2xx")
		m.want(t, 1, "bobbin_http_requests_total", route, "method=GET", "status=4xx")
		m.want(t, 3, "bobbin_http_request_duration_seconds", route, "method=GET")
		m.want(t, 1, "bobbin_http_requests_in_flight") // this one
		m.want(t, 1, "bobbin_build_info", "version=test")
		for _, name := range []string{"go_goroutines", "process_start_time_seconds", "go_sql_open_connections"} {
			if m.sum(name) <= 0 {
				t.Errorf("%s is not there", name)
			}
		}
		for name, family := range m {
			for _, series := range family.GetMetric() {
				for _, l := range series.GetLabel() {
					if strings.Contains(l.GetValue(), string(id)) {
						t.Errorf("%s has the id of a session in its label %s", name, l.GetName())
					}
				}
			}
		}
	})
}

// Who may read the metrics: they are of all owners, so a key must be named; this
// machine may without one unless keys are required; and everybody when they are open.
func TestMetricsAccess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  setting
		want map[string]int // status by key
	}{
		{"no keys", func(*config.Config) {}, map[string]int{"": 200, "wrong": 401}},
		{"keys", twoOwners, map[string]int{"": 200, "alice's secret": 403, "wrong": 401}},
		{"a key that is named", func(c *config.Config) { twoOwners(c); c.Metrics.Keys = []string{"bob"} },
			map[string]int{"": 200, "alice's secret": 403, "bob's secret": 200}},
		{"keys required", func(c *config.Config) { twoOwners(c); c.Metrics.Keys, c.Auth.Required = []string{"bob"}, true },
			map[string]int{"": 401, "alice's secret": 403, "bob's secret": 200}},
		{"open", func(c *config.Config) { twoOwners(c); c.Metrics.Open, c.Auth.Required = true, true },
			map[string]int{"": 200, "alice's secret": 200, "wrong": 200}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, dbtest.SQLiteURL(t), tt.set)
			for key, want := range tt.want {
				got := http.StatusOK
				_, err := h.client(key).Metrics(t.Context())
				var problem *client.ProblemError
				if errors.As(err, &problem) {
					got = problem.Status
				} else if err != nil {
					t.Fatal(err)
				}
				if got != want {
					t.Errorf("with the key %q: got status %d, want %d", key, got, want)
				}
			}
		})
	}
}
