package telemetry

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
)

// contextMetrics are the figures of prompts (R6).
type contextMetrics struct {
	prompt   *prometheus.HistogramVec
	share    *prometheus.HistogramVec
	summary  *prometheus.HistogramVec
	messages *prometheus.HistogramVec
	window   *prometheus.GaugeVec
	usable   *prometheus.GaugeVec
	rungs    *prometheus.CounterVec
	warnings *prometheus.CounterVec
}

func newContextMetrics() contextMetrics {
	return contextMetrics{
		prompt:   histogram("context_prompt_tokens", "Size of prompts as they are sent, estimated, in the model's tokens.", tokenBuckets(), "model"),
		share:    histogram("context_usage_ratio", "Part of the usable window that prompts take.", shareBuckets(), "model"),
		summary:  histogram("context_summary_tokens", "Size of the summary in prompts that have one, in the model's tokens.", tokenBuckets(), "model"),
		messages: histogram("context_window_messages", "Messages in prompts, besides those that the summary covers.", messageBuckets(), "model"),
		window:   gauge("context_window_tokens", "The model's context window.", "model"),
		usable:   gauge("context_usable_tokens", "Most that a prompt may have: the window without what is kept for the answer.", "model"),
		rungs:    counter("context_rungs_total", "Measures that were taken to make prompts fit.", "rung"),
		warnings: counter("context_warnings_total", "Prompts near the limit while nothing will be summarized in time, once in a compaction cycle.", "model"),
	}
}

func (m contextMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.prompt, m.share, m.summary, m.messages, m.window, m.usable, m.rungs, m.warnings}
}

// The rungs of the ladder (CONTEXT § 4) as labels.
const (
	rungSummarize    = 2
	rungDeeper       = 3
	rungWithoutModel = 5
)

// rungLabel returns the label of a rung.
func rungLabel(rung int) string {
	names := []string{1: "mask", 2: "summarize", 3: "summarize_deeper", 4: "cut_summary", 5: "without_model", 6: "shorten", 7: "leave_out", 8: "refuse"}
	if rung < 1 || rung >= len(names) {
		return other
	}
	return names[rung]
}

// Fitted counts the measures that were taken to make a prompt fit.
func (t *Telemetry) Fitted(_ context.Context, _ compaction.Turn, d contextwindow.Decision, _ error) {
	for _, rung := range d.Rungs {
		if rung != rungSummarize && rung != rungDeeper { // those are counted when they are climbed
			t.context.rungs.WithLabelValues(rungLabel(rung)).Inc()
		}
	}
}

// Sending counts a prompt on its way to a model.
func (t *Telemetry) Sending(_ context.Context, turn compaction.Turn, d contextwindow.Decision, sent contextwindow.Sent) {
	model, used := t.labels.model(turn.Profile.Model.Info().Name), float64(sent.Used(d))
	t.context.prompt.WithLabelValues(model).Observe(used)
	t.context.messages.WithLabelValues(model).Observe(float64(messages(d)))
	t.context.window.WithLabelValues(model).Set(float64(d.Budget.Window))
	t.context.usable.WithLabelValues(model).Set(float64(d.Budget.Usable))
	if d.Budget.Usable > 0 {
		t.context.share.WithLabelValues(model).Observe(used / float64(d.Budget.Usable))
	}
	if sent.Summary > 0 {
		t.context.summary.WithLabelValues(model).Observe(float64(d.Shown(sent.Summary)))
	}
}

// messages counts the messages of a prompt.
func messages(d contextwindow.Decision) int {
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

// Warned counts a prompt near the limit.
func (t *Telemetry) Warned(_ context.Context, turn compaction.Turn, _ contextwindow.Decision) {
	t.context.warnings.WithLabelValues(t.labels.model(turn.Profile.Model.Info().Name)).Inc()
}
