package telemetry

import (
	"context"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// contextMetrics are the metrics of prompts.
type contextMetrics struct {
	prompt   *prometheus.HistogramVec
	share    *prometheus.HistogramVec
	summary  *prometheus.HistogramVec
	messages *prometheus.HistogramVec
	window   *prometheus.GaugeVec
	usable   *prometheus.GaugeVec
	rungs    *prometheus.CounterVec
	warnings *prometheus.CounterVec
	checks   prometheus.Counter
	lost     prometheus.Counter
	thoughts *prometheus.CounterVec
	dropped  *prometheus.CounterVec
	natives  *prometheus.CounterVec
}

func newContextMetrics() contextMetrics {
	return contextMetrics{
		prompt:   newHistogram("context_prompt_tokens", "Estimated size of sent prompts, in the model's tokens.", tokenBuckets(), "model"),
		share:    newHistogram("context_usage_ratio", "Fraction of the usable window that prompts take.", shareBuckets(), "model"),
		summary:  newHistogram("context_summary_tokens", "Size of the summary in prompts that have one, in the model's tokens.", tokenBuckets(), "model"),
		messages: newHistogram("context_window_messages", "Messages in prompts, not counting those that the summary covers.", messageBuckets(), "model"),
		window:   newGauge("context_window_tokens", "The model's context window.", "model"),
		usable:   newGauge("context_usable_tokens", "Maximum size of a prompt: the window minus the reserve for the answer.", "model"),
		rungs:    newCounter("context_rungs_total", "Measures taken to make prompts fit, by rung of the ladder.", "rung"),
		warnings: newCounter("context_warnings_total", "Prompts near the limit while no summary will be ready in time, at most once per compaction cycle.", "model"),
		checks:   newCounter("context_coverage_checks_total", "Checks that each message of a conversation is summarized or within reach of the next prompt.").WithLabelValues(),
		lost:     newCounter("context_lost_messages_total", "Messages that failed these checks. It must stay 0.").WithLabelValues(),
		thoughts: newCounter("context_thoughts_total", "Thoughts (reasoning with a signature) of messages in prompts, by what became of them: kept; compacted, changed, other_model, unbound: not sent, for that reason.", "model", "outcome"),
		natives:  newCounter("context_native_summaries_total", "Summaries that providers wrote themselves (strategy native), by what became of them.", "model", "outcome"),
		dropped:  newCounter("context_thoughts_dropped_total", "Thoughts that were sent and that the provider left out, by its reason.", "model", "reason"),
	}
}

func (m contextMetrics) allCollectors() []prometheus.Collector {
	for rung := range rungNames() {
		m.rungs.WithLabelValues(rungLabel(rung)) // 0 from the start
	}
	return []prometheus.Collector{m.prompt, m.share, m.summary, m.messages, m.window, m.usable, m.rungs, m.warnings, m.checks, m.lost, m.thoughts, m.dropped, m.natives}
}

// Rungs of the ladder that have a label of their own here.
const (
	rungSummarize    = 2
	rungDeeper       = 3
	rungWithoutModel = 5
)

func rungNames() []string {
	return []string{0: "recall", 1: "mask", 2: "summarize", 3: "summarize_deeper", 4: "cut_summary", 5: "without_model", 6: "shorten", 7: "leave_out", 8: "refuse"}
}

// rungLabel returns the label of a rung.
func rungLabel(rung int) string {
	names := rungNames()
	if rung < 0 || rung >= len(names) {
		return other
	}
	return names[rung]
}

// Fitted counts the measures that made a prompt fit.
func (t *Telemetry) Fitted(_ context.Context, _ compaction.Turn, d contextwindow.Decision, _ error) {
	for _, rung := range d.Rungs {
		if rung != rungSummarize && rung != rungDeeper { // Summarizing counts these
			t.context.rungs.WithLabelValues(rungLabel(rung)).Inc()
		}
	}
}

// Sending records a prompt that is sent to a model.
func (t *Telemetry) Sending(_ context.Context, turn compaction.Turn, d contextwindow.Decision, sent contextwindow.PromptSize) {
	model, used := t.labels.modelLabel(turn.Profile.Model.Info().Name), float64(sent.Used(d))
	t.context.prompt.WithLabelValues(model).Observe(used)
	t.context.messages.WithLabelValues(model).Observe(float64(countMessages(d)))
	t.context.window.WithLabelValues(model).Set(float64(d.Budget.Window))
	t.context.usable.WithLabelValues(model).Set(float64(d.Budget.Usable))
	if d.Budget.Usable > 0 {
		t.context.share.WithLabelValues(model).Observe(used / float64(d.Budget.Usable))
	}
	for outcome, n := range map[string]int{
		"kept": sent.Thoughts.Kept, "compacted": sent.Thoughts.Compacted, "changed": sent.Thoughts.Changed,
		"other_model": sent.Thoughts.OtherModel, "unbound": sent.Thoughts.Unbound,
	} {
		if n > 0 {
			t.context.thoughts.WithLabelValues(model, outcome).Add(float64(n))
		}
	}
	if sent.Summary > 0 {
		t.context.summary.WithLabelValues(model).Observe(float64(d.Shown(sent.Summary)))
	}
}

// ThoughtsDropped counts the thoughts that a provider left out.
func (t *Telemetry) ThoughtsDropped(_ context.Context, turn compaction.Turn, dropped llm.DroppedThoughts) {
	model := t.labels.modelLabel(turn.Profile.Model.Info().Name)
	for reason, n := range dropped.Reasons {
		t.context.dropped.WithLabelValues(model, string(reason)).Add(float64(n))
	}
}

// NativeSummary counts a provider's own summary.
func (t *Telemetry) NativeSummary(_ context.Context, turn compaction.Turn, outcome compaction.NativeOutcome) {
	t.context.natives.WithLabelValues(t.labels.modelLabel(turn.Profile.Model.Info().Name), string(outcome)).Inc()
}

// countMessages returns the number of messages in a prompt.
func countMessages(d contextwindow.Decision) int {
	n := len(d.Pinned)
	for _, slots := range [][]contextwindow.Slot{d.History, d.Run} {
		for _, s := range slots {
			if s.Place != core.PlaceLeftOut {
				n++
			}
		}
	}
	return n
}

// CoverageChecked records a coverage check, and how many messages it missed.
func (t *Telemetry) CoverageChecked(lost int) {
	t.context.checks.Inc()
	t.context.lost.Add(math.Abs(float64(lost)))
}

// Warned counts a warning about a prompt near the limit.
func (t *Telemetry) Warned(_ context.Context, turn compaction.Turn, _ contextwindow.Decision) {
	t.context.warnings.WithLabelValues(t.labels.modelLabel(turn.Profile.Model.Info().Name)).Inc()
}
