package telemetry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
)

// summaryMetrics are the metrics of summaries.
type summaryMetrics struct {
	created   *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	tokens    *prometheus.HistogramVec
	fallbacks *prometheus.CounterVec
	commits   *prometheus.CounterVec
	saved     *prometheus.CounterVec
}

func newSummaryMetrics() summaryMetrics {
	return summaryMetrics{
		created: newCounter("summaries_total", "Summaries, by kind (rolling, or run: notes on the older part of a tool loop), trigger, strategy, and outcome: made, fallback (created without "+
			"the model), skipped (would not have been smaller), canceled, failed.", "kind", "trigger", "strategy", "outcome"),
		duration:  newHistogram("summary_duration_seconds", "Time to create a summary, including its model calls.", modelBuckets(), "strategy", "outcome"),
		tokens:    newHistogram("summary_tokens", "Size of new summaries, in cl100k_base tokens.", tokenBuckets(), "strategy"),
		fallbacks: newCounter("summary_fallbacks_total", "Summaries created without their model, by cause.", "cause"),
		commits:   newCounter("summary_commits_total", "Commits of summaries: stored and in use, prepared (not in use yet), stale (the session was changed meanwhile), failed.", "outcome"),
		saved:     newCounter("summary_saved_tokens_total", "Tokens that stored summaries saved in prompts, in the model's tokens.", "model"),
	}
}

func (m summaryMetrics) allCollectors() []prometheus.Collector {
	for _, outcome := range []string{"stored", "prepared", "stale", "failed"} {
		m.commits.WithLabelValues(outcome) // 0 from the start
	}
	return []prometheus.Collector{m.created, m.duration, m.tokens, m.fallbacks, m.commits, m.saved}
}

// Summarizing counts a summary that is begun; the caller calls the returned function with its
// outcome.
func (t *Telemetry) Summarizing(ctx context.Context, turn compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	start := time.Now()
	strategy, kind := turn.Profile.Policy.Strategy, string(cmp.Or(o.Kind, core.SummaryRolling))
	t.context.rungs.WithLabelValues(rungLabel(o.Rung)).Inc()
	ctx, span := t.startSpan(ctx, "summarize", func() []trace.SpanStartOption { return summaryAttributes(turn, o) })
	return ctx, func(m compaction.Made) {
		endSummary(span, m)
		t.summaries.created.WithLabelValues(kind, o.Trigger, strategy, string(m.Outcome)).Inc()
		t.summaries.duration.WithLabelValues(strategy, string(m.Outcome)).Observe(time.Since(start).Seconds())
		switch m.Outcome {
		case compaction.OutcomeFallback:
			t.summaries.fallbacks.WithLabelValues(m.Cause).Inc()
			t.context.rungs.WithLabelValues(rungLabel(rungWithoutModel)).Inc()
			t.summaries.tokens.WithLabelValues(strategy).Observe(float64(m.Summary.TokenCount))
		case compaction.OutcomeMade:
			t.summaries.tokens.WithLabelValues(strategy).Observe(float64(m.Summary.TokenCount))
		}
	}
}

// summaryAttributes returns what is known of a summary when it is begun.
func summaryAttributes(turn compaction.Turn, o contextwindow.Order) []trace.SpanStartOption {
	return []trace.SpanStartOption{trace.WithAttributes(
		semconv.GenAIConversationID(string(turn.Session.ID)),
		attribute.String("bobbin.summary.kind", string(cmp.Or(o.Kind, core.SummaryRolling))),
		attribute.String("bobbin.summary.trigger", o.Trigger), attribute.String("bobbin.summary.strategy", turn.Profile.Policy.Strategy),
		attribute.Int("bobbin.summary.messages", o.Messages), attribute.Int("bobbin.summary.tokens_before", o.Tokens),
	)}
}

// endSummary ends the span of a summary.
func endSummary(span trace.Span, m compaction.Made) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("bobbin.summary.outcome", string(m.Outcome)))
		if m.Cause != "" {
			span.SetAttributes(attribute.String("bobbin.summary.cause", m.Cause))
		}
		if m.Err != nil {
			failSpan(span, errorType(m.Err))
		} else {
			span.SetAttributes(attribute.Int("bobbin.summary.tokens_after", m.Summary.TokenCount))
		}
	}
	span.End()
}

// Committed counts the commit of a summary, or its failure.
func (t *Telemetry) Committed(_ context.Context, c compaction.Commit) {
	switch {
	case errors.Is(c.Err, core.ErrStale):
		t.summaries.commits.WithLabelValues("stale").Inc()
		return
	case c.Err != nil:
		t.summaries.commits.WithLabelValues("failed").Inc()
		return
	}
	if c.Summary.State == core.SummaryPrepared {
		t.summaries.commits.WithLabelValues("prepared").Inc()
		return
	}
	t.summaries.commits.WithLabelValues("stored").Inc()
	if saved := c.Before.Total - c.After.Total; saved > 0 {
		t.summaries.saved.WithLabelValues(t.labels.modelLabel(c.Turn.Profile.Model.Info().Name)).Add(float64(saved))
	}
}
