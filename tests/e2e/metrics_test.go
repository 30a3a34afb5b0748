package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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

// eventually scrapes until the metric's series with the labels add up to want: what
// ends after an answer is counted a moment later.
func eventually(t testing.TB, c *client.Client, want float64, name string, labels ...string) exposition {
	t.Helper()
	limit := time.Now().Add(apptest.Patience)
	for {
		m := scrape(t, c)
		switch {
		case m.sum(name, labels...) == want:
			// A scrape reads one metric after the other: what was counted before this one
			// is surely in the next.
			return scrape(t, c)
		case time.Now().After(limit):
			t.Fatalf("%s%v: got %v, want %v", name, labels, m.sum(name, labels...), want)
		}
		apptest.PauseBriefly(t)
	}
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
				got := http.StatusOK
				_, err := readMetrics(t.Context(), h.NewClient(key))
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
		m := eventually(t, h.Client, float64(turns), "bobbin_runs_finished_total", agent, "status=succeeded")
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

// newCollector starts a receiver of traces and stops it after the test.
func newCollector(t testing.TB) *collector.Server {
	t.Helper()
	c := collector.New()
	t.Cleanup(c.Close)
	return c
}

// withTraces sends traces to the collector.
func withTraces(c *collector.Server) apptest.Setting {
	return func(cfg *config.Config) { cfg.Telemetry.OTLPEndpoint = c.URL }
}

// forest is spans by their ids, and by their names.
type forest struct {
	byID  map[string]collector.Span
	named map[string][]collector.Span
}

func newForest(spans []collector.Span) forest {
	f := forest{byID: map[string]collector.Span{}, named: map[string][]collector.Span{}}
	for _, s := range spans {
		f.byID[s.ID] = s
		f.named[s.Name] = append(f.named[s.Name], s)
	}
	return f
}

// under returns the names of the spans above the span, the nearest first.
func (f forest) under(s collector.Span) (names []string) {
	for s.Parent != "" {
		s = f.byID[s.Parent]
		names = append(names, s.Name)
	}
	return names
}

// Traces of a conversation: the request, the run that it is linked to, its nodes, the
// model calls with the attributes of the conventions, the tool, the summary. They are
// all sent before the process has stopped, and nothing of what was said is in them.
func TestTracesOfAConversation(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		to := newCollector(t)
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 1024, p), withTraces(to), func(c *config.Config) { c.Models[0].Model = "provider-house" })
		id := apptest.NewSession(t, h.Client, ops.NewSession{UserID: "user-4711"})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "use the tool with SECRETWORD"})
		turns := 1
		for ; session(t, h.Client, id).SummaryVersion == 0 && turns < 60; turns++ {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("question %d: %s", turns, strings.Repeat("SECRETWORD of the pumps in hall three ", 20))})
		}
		h.Stop()
		f := newForest(to.Spans())

		requests, runs, chats := f.named["POST /api/v1/sessions/:id/messages"], f.named["invoke_agent assistant"], f.named["chat provider-house"]
		if len(requests) != turns || len(runs) != turns || int64(len(chats)) != p.Requests() {
			t.Fatalf("got %d requests, %d runs and %d model calls, want %d, %d and %d", len(requests), len(runs), len(chats), turns, turns, p.Requests())
		}
		for i, run := range runs {
			if run.Parent != "" || len(run.Links) != 1 || f.byID[run.Links[0]].Name != "POST /api/v1/sessions/:id/messages" || run.TraceID == f.byID[run.Links[0]].TraceID {
				t.Errorf("run %d %+v: want a trace of its own that is linked to its request", i, run)
			}
			if run.Attributes["gen_ai.conversation.id"] != string(id) || run.Attributes["bobbin.run.status"] != "succeeded" {
				t.Errorf("run %d: got %v", i, run.Attributes)
			}
		}
		checkCalls(t, f, chats)
		tool, summary := f.named["execute_tool calculator"], f.named["summarize"]
		if len(tool) != 1 || !slices.Equal(f.under(tool[0]), []string{"node tool_node", "invoke_agent assistant"}) || tool[0].Attributes["gen_ai.tool.name"] != "calculator" {
			t.Errorf("got the tool calls %+v, want one below its node", tool)
		}
		if len(summary) == 0 || int64(len(summary)) != p.Summaries() || summary[0].Attributes["bobbin.summary.outcome"] != "made" || summary[0].Attributes["bobbin.summary.kind"] != "rolling" {
			t.Errorf("got the summaries %+v, want the %d that were asked for", summary, p.Summaries())
		}
		for _, secret := range []string{"SECRETWORD", "answer to", "6 * 7", "You are", "user-4711", "Test the long conversation"} {
			if strings.Contains(to.Text(), secret) {
				t.Errorf("the spans hold %q", secret)
			}
		}
	})
}

// checkCalls checks where the spans of model calls are.
func checkCalls(t *testing.T, f forest, chats []collector.Span) {
	t.Helper()
	places := map[string]int{}
	for _, c := range chats {
		above := f.under(c)
		places[above[0]]++
		if above[0] != "summarize" && above[len(above)-1] != "invoke_agent assistant" || c.Kind != "CLIENT" || c.Failed {
			t.Errorf("got a model call below %q: %+v", above, c)
		}
	}
	if n := len(f.named["summarize"]); places["summarize"] != n || places["node llm_node"] != len(chats)-n {
		t.Errorf("got model calls below %v, want one below each summary and the others below llm_node", places)
	}
}
