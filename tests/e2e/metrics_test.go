package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/collector"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// exposition is what a server exposes, by the name of the metric.
type exposition map[string]*dto.MetricFamily

// readMetrics returns the metrics in Prometheus' text format.
func readMetrics(ctx context.Context, c *client.Client) (string, error) {
	var text strings.Builder
	metrics := ops.Op[struct{}, ops.Nothing]{Operation: ops.Operation{Route: "GET /metrics"}}
	err := client.Download(ctx, c, metrics, struct{}{}, &text)
	return text.String(), err
}

// scrape reads the metrics as Prometheus does, with its own parser.
func scrape(t testing.TB, c *client.Client) exposition {
	t.Helper()
	text := must.Get(readMetrics(t.Context(), c))(t)
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
		missing := slices.Clone(labels)
		for _, l := range m.GetLabel() {
			missing = slices.DeleteFunc(missing, func(label string) bool { return label == l.GetName()+"="+l.GetValue() })
		}
		if len(missing) == 0 {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return total
}

// want fails the test unless the metric's series with the labels add up to want.
func (e exposition) want(t testing.TB, want float64, name string, labels ...string) {
	t.Helper()
	compare.Equal(t, fmt.Sprintf("%s%v", name, labels), want, e.sum(name, labels...))
}

// Who may read the metrics: they are of all owners, so a key must be named; this
// machine may without one unless keys are required; and everybody when they are open.
func TestMetricsAccess(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  apptest.Setting
		want map[string]int // status by key
	}{
		{"no keys", func(*config.Config) {}, map[string]int{"": 200, "any": 200}},
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
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), tt.set)
			for key, want := range tt.want {
				if _, err := readMetrics(t.Context(), h.NewClient(key)); cmp.Or(status(err), http.StatusOK) != want || (err == nil) != (want == http.StatusOK) {
					t.Errorf("with the key %q: got %v, want %d", key, err, want)
				}
			}
		})
	}
}

// R6: what a conversation does is counted: prompts and their windows, summaries with
// what they saved, model calls with tokens and cost, tools, runs, and what the
// calibration learned. Nobody's ids, names or words are in it.
func TestMetricsOfAConversation(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 1024, p), func(c *config.Config) { c.Models[0].InputPrice = 2 })
		id := apptest.NewSession(t, h.Client, ops.NewSession{UserID: "user-4711"})
		turns := 0
		for ; session(t, h.Client, id).SummaryVersion == 0 && turns < 60; turns++ {
			question := fmt.Sprintf("question %d: %s", turns, strings.Repeat("SECRETWORD of the pumps in hall three ", 20))
			if turns == 2 {
				question = "use the tool"
			}
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question})
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And on."}) // the summary may have come after the last prompt
		turns++
		model, agent := "model=house", "agent=assistant"
		process.Await(t, "the runs are counted, after their answers", func() bool {
			return scrape(t, h.Client).sum("bobbin_runs_finished_total", agent, "status=succeeded") == float64(turns)
		})
		m := scrape(t, h.Client) // one metric is read after the other: what was counted before this is surely in it
		calls := float64(p.Requests())
		m.want(t, 0, "bobbin_runs_active")
		m.want(t, 0, "bobbin_runs_queued")
		m.want(t, float64(turns+1), "bobbin_node_duration_seconds", "node=llm_node")

		m.want(t, calls, "bobbin_model_calls_total", model)
		m.want(t, 0, "bobbin_model_errors_total")
		usage := usageOf(t, h.Client, id)
		m.want(t, float64(usage.InputTokens), "bobbin_model_input_tokens_total", model)
		m.want(t, float64(usage.OutputTokens), "bobbin_model_output_tokens_total", model)
		if got, books := m.sum("bobbin_model_cost_usd_total", model), float64(usage.CostMicroUSD)/1e6; got <= 0 || math.Abs(got-books) > 1e-9 {
			t.Errorf("got a cost of %v, the books say %v", got, books)
		}

		m.want(t, 1, "bobbin_tool_calls_total", "tool=calculator", "outcome=ok")
		made := float64(p.Summaries())
		m.want(t, made, "bobbin_summaries_total", "kind=rolling", "strategy=hybrid", "outcome=made")
		m.want(t, 1, "bobbin_summary_commits_total", "outcome=stored")
		m.want(t, made, "bobbin_context_rungs_total", "rung=summarize")
		m.want(t, 0, "bobbin_context_warnings_total")
		m.want(t, 0, "bobbin_context_lost_messages_total")
		if m.sum("bobbin_context_coverage_checks_total") < 1 {
			t.Error("the summary was not followed by a check of the coverage")
		}
		m.want(t, float64(turns+1), "bobbin_context_prompt_tokens", model) // the tool's turn has two
		for _, name := range []string{
			"bobbin_summary_saved_tokens_total", "bobbin_context_prompt_tokens", "bobbin_context_usage_ratio", "bobbin_context_window_messages", "bobbin_context_summary_tokens",
		} {
			if m.sum(name, model) <= 0 {
				t.Errorf("%s is not counted", name)
			}
		}
		if factor := m.sum("bobbin_calibration_factor", model); factor < 1 || factor > 1.4 || m.sum("bobbin_calibration_samples", model) < 5 {
			t.Errorf("got the factor %v, want about what the provider counts more", factor)
		}
		text := must.Get(readMetrics(t.Context(), h.Client))(t)
		for _, secret := range []string{string(id), "user-4711", "SECRETWORD", "owner="} {
			if strings.Contains(text, secret) {
				t.Errorf("the metrics hold %q", secret)
			}
		}
	})
}

// Traces of a conversation: the request, the run that it is linked to, its nodes, the model calls and
// the tool. They are all sent before the process has stopped, and nothing of what was said is in them.
func TestTracesOfAConversation(t *testing.T) {
	t.Parallel()
	to := collector.New()
	t.Cleanup(to.Close)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 1024, apptest.NewProvider(t, provider.Options{})), func(c *config.Config) {
		c.Models[0].Model, c.Telemetry.OTLPEndpoint = "provider-house", to.URL
	})
	id := apptest.NewSession(t, h.Client, ops.NewSession{UserID: "user-4711"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "use the tool with SECRETWORD"})
	h.Stop()
	byID, named := map[string]collector.Span{}, map[string]collector.Span{}
	for _, s := range to.Spans() {
		byID[s.ID], named[s.Name] = s, s
	}
	const request, agent = "POST /api/v1/sessions/:id/messages", "invoke_agent assistant"
	for name, above := range map[string]string{
		"node tool_node": agent, "node llm_node": agent, "execute_tool calculator": "node tool_node", "chat provider-house": "node llm_node",
	} {
		compare.Equal(t, "above "+name, above, byID[named[name].Parent].Name)
	}
	run := named[agent]
	if run.Parent != "" || len(run.Links) != 1 || byID[run.Links[0]].Name != request || run.TraceID == named[request].TraceID {
		t.Errorf("got the run %+v, want a trace of its own that is linked to its request", run)
	}
	if run.Attributes["gen_ai.conversation.id"] != string(id) || run.Attributes["bobbin.run.status"] != "succeeded" {
		t.Errorf("got the run's attributes %v", run.Attributes)
	}
	for _, secret := range []string{"SECRETWORD", "answer to", "6 * 7", "You are", "user-4711"} {
		if strings.Contains(to.Text(), secret) {
			t.Errorf("the spans hold %q", secret)
		}
	}
}
