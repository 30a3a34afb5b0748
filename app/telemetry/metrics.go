package telemetry

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// namespace prefixes the name of every metric of our own.
const namespace = "bobbin_"

// metric is a metric of our own: a counter if its name ends in _total, a histogram if it has
// buckets, else a gauge.
type metric struct {
	name    string // without the prefix
	labels  string // names, separated by blanks
	help    string
	buckets []float64
	zeros   []string // values of the labels that have a series from the start; one without labels has its own
	scraped bool     // read at each scrape
}

func (m metric) isCounter() bool { return strings.HasSuffix(m.name, "_total") }

// metrics returns all metrics of our own. The tables of docs/OBSERVABILITY.md and the dashboard
// have the same.
func metrics() []metric { //nolint:funlen // a table
	return []metric{
		{name: "http_requests_in_flight", help: "Requests in progress, including open event streams."},
		{name: "http_requests_total", labels: "route method status", help: "Completed requests, by route template, method and status class."},
		{name: "http_request_duration_seconds", labels: "route method", buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}, help: "Duration of requests, excluding event streams."},
		{name: "sse_streams_open", help: "Open event streams."},
		{name: "sse_streams_total", labels: "outcome", zeros: []string{"ended", "gone", "slow", "failed"}, help: "Closed event streams, by outcome: ended, gone (the reader disconnected), slow (the reader did not keep up and was dropped), failed."},
		{name: "sse_stream_duration_seconds", buckets: modelBuckets(), help: "Duration of event streams."},

		{name: "context_prompt_tokens", labels: "model", buckets: tokenBuckets(), help: "Estimated size of sent prompts, in the model's tokens."},
		{name: "context_usage_ratio", labels: "model", buckets: []float64{.1, .25, .4, .5, .6, .7, .8, .85, .9, .95, 1}, help: "Fraction of the usable window that prompts take."},
		{name: "context_summary_tokens", labels: "model", buckets: tokenBuckets(), help: "Size of the summary in prompts that have one, in the model's tokens."},
		{name: "context_window_messages", labels: "model", buckets: []float64{1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500, 1000}, help: "Messages in prompts, not counting those that the summary covers."},
		{name: "context_window_tokens", labels: "model", help: "The model's context window."},
		{name: "context_usable_tokens", labels: "model", help: "Maximum size of a prompt: the window minus the reserve for the answer."},
		{name: "context_rungs_total", labels: "rung", zeros: rungNames(), help: "Measures taken to make prompts fit, by rung of the ladder."},
		{name: "context_warnings_total", labels: "model", help: "Prompts near the limit while no summary will be ready in time, at most once per compaction cycle."},
		{name: "context_coverage_checks_total", help: "Checks that each message of a conversation is summarized or within reach of the next prompt."},
		{name: "context_lost_messages_total", help: "Messages that failed these checks. It must stay 0."},
		{name: "context_thoughts_total", labels: "model outcome", help: "Thoughts (reasoning with a signature) of messages in prompts, by what became of them: kept; compacted, changed, other_model, unbound: not sent, for that reason."},
		{name: "context_thoughts_dropped_total", labels: "model reason", help: "Thoughts that were sent and that the provider left out, by its reason."},
		{name: "context_native_summaries_total", labels: "model outcome", help: "Summaries that providers wrote themselves (strategy native), by what became of them."},
		{name: "summaries_total", labels: "kind trigger strategy outcome", help: "Summaries, by kind (rolling, or run: notes on the older part of a tool loop), trigger, strategy, and outcome: made, fallback (created without the model), skipped (would not have been smaller), canceled, failed."},
		{name: "summary_duration_seconds", labels: "strategy outcome", buckets: modelBuckets(), help: "Time to create a summary, including its model calls."},
		{name: "summary_tokens", labels: "strategy", buckets: tokenBuckets(), help: "Size of new summaries, in cl100k_base tokens."},
		{name: "summary_fallbacks_total", labels: "cause", help: "Summaries created without their model, by cause."},
		{name: "summary_commits_total", labels: "outcome", zeros: []string{"stored", "prepared", "stale", "failed"}, help: "Commits of summaries: stored and in use, prepared (not in use yet), stale (the session was changed meanwhile), failed."},
		{name: "summary_saved_tokens_total", labels: "model", help: "Tokens that stored summaries saved in prompts, in the model's tokens."},
		{name: "calibration_factor", labels: "model", scraped: true, help: "Tokens of the model per cl100k_base token; estimates are multiplied by it."},
		{name: "calibration_error_ratio", labels: "model", scraped: true, help: "Error of corrected estimates, as a fraction of the provider's count."},
		{name: "calibration_samples", labels: "model", scraped: true, help: "Calls that the calibration is based on."},

		{name: "model_calls_total", labels: "model", help: "Model calls; every try counts, including failed ones."},
		{name: "model_errors_total", labels: "model kind", help: "Failed model calls, by kind of error."},
		{name: "model_call_duration_seconds", labels: "model", buckets: modelBuckets(), help: "Duration of a call, from the request to the last token."},
		{name: "model_time_to_first_token_seconds", labels: "model", buckets: modelBuckets(), help: "Time from the request to the first token."},
		{name: "model_input_tokens_total", labels: "model", help: "Prompt tokens as counted by the provider, including cached ones."},
		{name: "model_output_tokens_total", labels: "model", help: "Answer tokens as counted by the provider, including reasoning."},
		{name: "model_reasoning_tokens_total", labels: "model", help: "Reasoning tokens, if the provider reports them."},
		{name: "model_cache_read_tokens_total", labels: "model", help: "Prompt tokens read from the provider's cache."},
		{name: "model_cache_write_tokens_total", labels: "model", help: "Prompt tokens written to the provider's cache."},
		{name: "model_cost_usd_total", labels: "model", help: "Cost of calls in US dollars, for models with prices."},
		{name: "tool_calls_total", labels: "tool outcome", help: "Finished tool calls, by outcome: ok, failed, timeout, panicked, too_large, canceled, unknown (the agent has no such tool), denied (by a person), interrupted (by a crash)."},
		{name: "tool_call_duration_seconds", labels: "tool", buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 2.5, 5, 10, 30, 60}, help: "Duration of a tool call."},

		{name: "runs_started_total", labels: "agent", help: "Started executions of runs; a take-over starts another one."},
		{name: "runs_finished_total", labels: "agent status", help: "Finished executions of runs, by status: succeeded, failed, canceled, handed_back (the process stops, another execution continues), lost (to another process), waiting (for a decision; the run continues later)."},
		{
			name: "run_failures_total", labels: "code", help: "Failed runs, by error code.", // alerts on a rate need the series
			zeros: []string{"internal", "context_floor", "timeout", "model_auth", "model_overloaded", "model_rate_limit", "model_timeout"},
		},
		{name: "run_duration_seconds", labels: "agent status", buckets: modelBuckets(), help: "Duration of an execution, including the wait for a slot."},
		{name: "runs_active", help: "Active executions of runs in this process."},
		{name: "runs_queued", scraped: true, help: "Runs waiting for an earlier run of their session, in the whole database."},
		{name: "runs_queued_oldest_age_seconds", scraped: true, help: "Time since the oldest of them was accepted; 0 = there is none."},
		{name: "node_duration_seconds", labels: "node", buckets: modelBuckets(), help: "Duration of a node of the agent graph."},

		{
			name: "delivery_tries_total", labels: "kind state", zeros: []string{"webhook delivered", "webhook failed", "webhook pending"},
			help: "Tries of deliveries, by the resulting state of the delivery: delivered, failed (given up; includes deliveries that were given up with their receiver without a try), pending (will be retried).",
		},
		{name: "deliveries_waiting", scraped: true, help: "Deliveries that are still being tried, in the whole database, counted up to 10,000."},
		{name: "deliveries_oldest_age_seconds", scraped: true, help: "Age of the oldest of them; 0 = there is none."},
		{name: "slack_received_total", labels: "type outcome", help: "What Slack sent, by type and outcome: stored, repeated (stored before), ignored (needs no handling), unknown (of a workspace in which the app is not installed), refused (a request with a wrong signature, too large or not understood), failed (the database; Slack sends it again)."},
		{name: "slack_threads_behind", scraped: true, help: "Threads of Slack that lack posts because the last attempt to post failed, in the whole database."},
		{name: "retention_removed_total", labels: "kind", zeros: []string{"events", "sessions"}, help: "Items removed because of their age: events, or archived sessions with everything in them."},
		{name: "retention_sweeps_total", labels: "outcome", zeros: []string{"done", "failed"}, help: "Retention sweeps, by outcome: done, failed."},
		{
			name: "lease_renewals_total", labels: "kind outcome", zeros: []string{"run renewed", "run lost", "run failed", "summary renewed", "summary lost", "summary failed"},
			help: "Lease renewals, by kind of work (run, summary) and outcome: renewed, lost (another process owns the work, or it has ended), failed (the database did not respond).",
		},
		{name: "takeovers_total", labels: "kind", zeros: []string{"run", "summary", "webhook"}, help: "Work taken over from another process, or from an earlier one of the same replica, by kind: run, summary, webhook."},
		{
			name: "sweep_finds_total", labels: "work", zeros: []string{"lapsed_run", "queued_run", "approval", "webhook"},
			help: "Work discovered by the sweep because no signal announced it: lapsed_run, queued_run, approval (not decided in time), webhook.",
		},
		{name: "fenced_writes_total", labels: "kind", zeros: []string{"run", "webhook"}, help: "Writes refused because another process had taken over the work, by kind: run, webhook. For summaries see bobbin_summary_commits_total."},

		{name: "event_fan_out_seconds", buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}, help: "Delay between an event and its arrival at a watcher over the bus, by the clocks of both processes."},
		{name: "watchers_open", help: "Watchers of events in this process: event streams, and requests that wait for a run."},
		{name: "watchers_slow_total", help: "Watchers that were dropped because they were too far behind; they reconnect and miss nothing."},
		{name: "event_resyncs_total", help: "Watchers told to reload because their events had expired."},
		{name: "events_found_total", help: "Events that watchers read from the database because the bus had not delivered them in time."},
		{name: "nats_connected", scraped: true, help: "1 while this process is connected to NATS, else 0."},
		{name: "nats_routes", scraped: true, help: "Connections to other replicas in the replicas' own cluster; 0 with an external cluster."},
		{name: "nats_reconnects_total", scraped: true, help: "Reconnects to NATS."},
		{name: "nats_slow_total", scraped: true, help: "Times that messages of other replicas arrived faster than they were read, and some were lost; watchers then read the database."},
		{name: "nats_messages_total", labels: "direction", scraped: true, help: "Messages from (in) and to (out) other replicas: events, partial text, wake-ups."},
	}
}

// modelBuckets fit waits for a model, in seconds.
func modelBuckets() []float64 {
	return []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
}

// tokenBuckets range from a line to the largest window, 64 to a million tokens.
func tokenBuckets() []float64 { return prometheus.ExponentialBuckets(64, 2, 15) }

// instruments are the metrics that are counted as things happen, by name.
type instruments struct {
	counters   map[string]*prometheus.CounterVec
	gauges     map[string]*prometheus.GaugeVec
	histograms map[string]*prometheus.HistogramVec
}

func (in instruments) add(name string, n float64, labels ...string) {
	in.counters[name].WithLabelValues(labels...).Add(n)
}

func (in instruments) gauge(name string, labels ...string) prometheus.Gauge {
	return in.gauges[name].WithLabelValues(labels...)
}

func (in instruments) observe(name string, value float64, labels ...string) {
	in.histograms[name].WithLabelValues(labels...).Observe(value)
}

// scrapeTime bounds a query of the database.
const scrapeTime = 2 * time.Second

// sendValue sends the value of a metric that is scraped.
type sendValue func(name string, value float64, labels ...string)

// scraper reads metrics of the table at each scrape; what it will send is not known before.
type scraper func(ctx context.Context, send sendValue)

// Describe sends nothing.
func (scraper) Describe(chan<- *prometheus.Desc) {}

// Collect sends the current values.
func (read scraper) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	table := metrics()
	read(ctx, func(name string, value float64, labels ...string) {
		m := table[slices.IndexFunc(table, func(m metric) bool { return m.name == name })]
		kind := prometheus.GaugeValue
		if m.isCounter() {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(namespace+name, m.help, strings.Fields(m.labels), nil), kind, value, labels...)
	})
}

// other is the label of everything unknown.
const other = "other"

// Labels map names to labels. A name may come from outside: each function returns one of a
// bounded number of labels for any input. Without a function the label is "other".
type Labels struct {
	Model func(name string) string
	Agent func(name string) string
	Tool  func(name string) string
}

func (l Labels) modelLabel(name string) string { return boundedLabel(l.Model, name) }

// boundedLabel returns the name's label as valid UTF-8, which Prometheus requires.
func boundedLabel(of func(string) string, name string) string {
	if of == nil {
		return other
	}
	return strings.ToValidUTF8(of(name), "\uFFFD")
}
