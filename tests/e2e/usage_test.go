package e2e_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/apptest"
	"bobbin/tests/collector"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// usageOf returns the usage of a session.
func usageOf(t testing.TB, c *client.Client, id core.SessionID) core.UsageTotal {
	t.Helper()
	detail := must.Get(client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: id}))(t)
	return detail.Usage
}

// rows returns the keys and the calls of a usage.
func rows(t testing.TB, c *client.Client, by core.UsageGroup) []string {
	t.Helper()
	report := must.Get(client.Call(t.Context(), c, ops.GetUsage, core.UsageQuery{GroupBy: by}))(t)
	var list []string
	for _, r := range report.Items {
		list = append(list, fmt.Sprintf("%s %d", r.Key, r.Calls))
	}
	return list
}

// Usage and cost per session, user, agent and model; every run says by which version of its agent it was done.
func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), twoOwners, func(c *config.Config) {
			c.Models[0].InputPrice, c.Models[0].OutputPrice = 2, 8
		})
		alice := h.NewClient("alice's secret")
		first := apptest.NewSession(t, alice, ops.NewSession{UserID: "u1"})
		second := apptest.NewSession(t, alice, ops.NewSession{UserID: "u2", Agent: "quick"})
		got := apptest.SendMessage(t, alice, core.SendMessage{SessionID: first, Content: "use the tool"})
		apptest.SendMessage(t, alice, core.SendMessage{SessionID: second, Content: "hello"})
		agent, err := client.Call(t.Context(), alice, ops.GetAgent, ops.InAgent{Name: "assistant"})
		if err != nil || len(agent.Version) != 12 || got.Run.AgentVersion != agent.Version {
			t.Errorf("got run of version %q, want %q, error %v", got.Run.AgentVersion, agent.Version, err)
		}
		total := usageOf(t, alice, first)
		if want := 2*total.InputTokens + 8*total.OutputTokens; total.Calls != 2 || total.CostMicroUSD != want || want == 0 || total.UnpricedCalls != 0 {
			t.Errorf("got %+v, want two calls for %d", total, want)
		}
		if u := got.Run.Usage; int64(u.InputTokens) != total.InputTokens || int64(u.OutputTokens) != total.OutputTokens {
			t.Errorf("got %+v in the run, %+v in the books", u, total)
		}
		for by, want := range map[core.UsageGroup][]string{
			core.UsageBySession: {string(second) + " 1", string(first) + " 2"},
			core.UsageByUser:    {"u1 2", "u2 1"},
			core.UsageByAgent:   {"assistant 2", "quick 1"},
			core.UsageByModel:   {"house 3"},
		} {
			compare.Equal(t, "by "+string(by), want, rows(t, alice, by))
		}
	})
}

// Spend limits are per key and day: over one, messages are refused until midnight,
// and a run at work ends before its next model call; others go on.
func TestSpendLimits(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), twoOwners, func(c *config.Config) {
			c.Models[0].InputPrice, c.Models[0].OutputPrice = 2, 8
			c.Auth.Limits = []config.SpendLimit{{Key: "alice", TokensPerDay: 10}, {Key: "bob", USDPerDay: 1000}}
		})
		alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
		id := apptest.NewSession(t, alice, ops.NewSession{})
		got := apptest.ReadTurn(t, apptest.Send(t.Context(), alice, core.SendMessage{SessionID: id, Content: "use the tool", ClientMessageID: "c-1"}))
		if got.Run.Status != core.RunFailed || got.Run.Error == nil || got.Run.Error.Code != core.CodeSpendLimit ||
			!strings.Contains(got.Run.Error.Message, "the limit of 10 tokens a day is reached") {
			t.Errorf("got run %s, error %+v, want it ended by the limit before its second call", got.Run.Status, got.Run.Error)
		}
		compare.Equal(t, "tool results", 1, kinds(apptest.ListMessages(t, alice, id))["tool results"])
		_, err := apptest.SendAsync(t.Context(), alice, core.SendMessage{SessionID: id, Content: "more"})
		wantProblem(t, err, core.ErrRateLimited, http.StatusTooManyRequests, "it begins anew at ")
		var problem *client.ProblemError
		if !errors.As(err, &problem) || problem.Code != core.CodeSpendLimit || problem.RetryAfter <= 0 || problem.RetryAfter > 24*time.Hour {
			t.Errorf("got %+v, want when to come back", problem)
		}
		// What was accepted before is answered with its run.
		compare.Equal(t, "the run of the first time", got.Run.ID, must.Get(apptest.SendAsync(t.Context(), alice, core.SendMessage{SessionID: id, Content: "use the tool", ClientMessageID: "c-1"}))(t).ID)
		compare.Equal(t, "requests to the provider", 1, p.Requests())
		apptest.SendMessage(t, bob, core.SendMessage{SessionID: apptest.NewSession(t, bob, ops.NewSession{}), Content: "hello"})
		const unpriced = `a model without a price is refused to keys with usd_per_day`
		compare.Lacks(t, "the start with prices", h.Log.String(), unpriced)
		h.Config.Models[0].InputPrice, h.Config.Models[0].OutputPrice = 0, 0
		if h.Restart(); !strings.Contains(h.Log.String(), unpriced) || !strings.Contains(h.Log.String(), "model=house keys=[bob]") {
			t.Errorf("got the log %s, want the model without a price, and whom it is refused to", h.Log)
		}
	})
}

// A run that ends within the grace period of a shutdown has measured its model: the next start knows it.
func TestShutdownKeepsCalibration(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id, _ := held(t, h, g)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.Stop()
	}()
	awaitReadiness(t, h, http.StatusServiceUnavailable, "")
	g.open()
	<-stopped
	h.Start()
	compare.Equal(t, "samples after the restart: want that of the run", 1, report(t, h.Client, id).Calibration.Samples)
}

// readers are the model servers of a test and what each of them was sent.
type readers struct {
	mu   sync.Mutex
	sent map[string]map[string]int // guarded by mu; by server, then by what was asked for: requests
	read map[string]int            // guarded by mu; by server: messages of the conversation in the texts beside answers
}

// serverOf returns a model server that is watched under a name.
func (r *readers) serverOf(t *testing.T, name string) *provider.Server {
	return apptest.NewProvider(t, provider.Options{Fault: func(_ http.ResponseWriter, a provider.Asked) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		kind := "answers"
		switch {
		case a.Summary:
			kind = "summaries"
		case strings.HasPrefix(a.Question, "<question>"):
			kind = "titles"
		}
		if r.sent[name] == nil {
			r.sent[name] = map[string]int{}
		}
		r.sent[name][kind]++
		if kind != "answers" {
			r.read[name] += strings.Count(a.Question, "the pump in hall three")
		}
		return false
	}})
}

// Summaries and titles are written where the conversation takes place, or where the
// operator said: by policy and by where the models are, who received how many requests
// and messages.
func TestPrivacy(t *testing.T) {
	t.Parallel()
	const house, cloud = "house", "cloud"
	byDefault := func(name string) func(*config.Config) { return func(c *config.Config) { c.DefaultLLM = name } }
	for _, c := range []struct {
		name    string
		setting func(c *config.Config) // of models "house" at the server house, "cloud" at the server cloud, "den" at the server house
		model   string                 // of the agent
		writer  string                 // server that writes the summaries and titles
	}{
		{"own server, cloud by default", byDefault(cloud), house, house},
		{"cloud, own server by default", byDefault(house), cloud, cloud},
		{"both on the own server", byDefault("den"), house, house},
		{"cloud named for summaries", func(c *config.Config) { c.DefaultLLM, c.ContextSummaryModel = house, cloud }, house, cloud},
	} {
		for _, policy := range contextwindow.PresetNames()[:apptest.ChooseSize(1, 5)] {
			r := &readers{sent: map[string]map[string]int{}, read: map[string]int{}}
			servers := map[string]*provider.Server{house: r.serverOf(t, house), cloud: r.serverOf(t, cloud)}
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel(house, 32_768, 2048, servers[house]), apptest.WithModel("den", 32_768, 2048, servers[house]),
				apptest.WithModel(cloud, 32_768, 2048, servers[cloud]), func(c *config.Config) { c.Titles = true }, c.setting,
				apptest.WithAgent("asked", fmt.Sprintf("name: asked\nsystem_prompt: You answer.\nmodel: %s\ncontext: {policy: %q}\n", c.model, policy)))
			id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "asked"})
			exchanges(t, h.Client, id, 12)
			if _, err := client.Call(t.Context(), h, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}); err != nil && !errors.Is(err, core.ErrConflict) { // the policy makes one
				t.Fatal(err)
			}
			h.Stop() // titles are written by then
			for server, sent := range r.sent {
				compare.True(t, sent["answers"] == 0 || server == c.model, "%s, %s: %s was asked for %d answers", c.name, policy, server, sent["answers"])
				if n := sent["summaries"]; n > 0 && server != c.writer || n == 0 && server == c.writer && policy != "off" || sent["titles"] > 0 && server != c.writer {
					t.Errorf("%s, %s: %s was asked for %d summaries and %d titles, want %s alone to be asked", c.name, policy, server, n, sent["titles"], c.writer)
				}
				if allowed := []string{c.model, c.writer}; r.read[server] > 0 && !slices.Contains(allowed, server) {
					t.Errorf("%s, %s: %s read %d messages, want only %v to read any", c.name, policy, server, r.read[server], allowed)
				}
			}
		}
	}
}

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
	must.True(t, err == nil, "the exposition cannot be read: %v\n%s", err, text)
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
		compare.True(t, m.sum("bobbin_context_coverage_checks_total") >= 1, "the summary was not followed by a check of the coverage")
		m.want(t, float64(turns+1), "bobbin_context_prompt_tokens", model) // the tool's turn has two
		for _, name := range []string{
			"bobbin_summary_saved_tokens_total", "bobbin_context_prompt_tokens", "bobbin_context_usage_ratio", "bobbin_context_window_messages", "bobbin_context_summary_tokens",
		} {
			compare.True(t, m.sum(name, model) > 0, "%s is not counted", name)
		}
		if factor := m.sum("bobbin_calibration_factor", model); factor < 1 || factor > 1.4 || m.sum("bobbin_calibration_samples", model) < 5 {
			t.Errorf("got the factor %v, want about what the provider counts more", factor)
		}
		text := must.Get(readMetrics(t.Context(), h.Client))(t)
		compare.Lacks(t, "metrics", text, string(id), "user-4711", "SECRETWORD", "owner=")
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
	compare.Lacks(t, "spans", to.Text(), "SECRETWORD", "answer to", "6 * 7", "You are", "user-4711")
}
