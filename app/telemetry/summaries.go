package telemetry

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
)

// Summarizing counts a summary that is begun; the caller calls the returned function with its
// outcome.
func (t *Telemetry) Summarizing(ctx context.Context, turn compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	start := time.Now()
	strategy, kind := turn.Profile.Policy.Strategy, string(cmp.Or(o.Kind, core.SummaryRolling))
	t.add("context_rungs_total", 1, rungLabel(o.Rung))
	ctx, span := t.startSpan(ctx, "summarize", func() []trace.SpanStartOption {
		return []trace.SpanStartOption{trace.WithAttributes(
			semconv.GenAIConversationID(string(turn.Session.ID)),
			attribute.String("bobbin.summary.kind", string(cmp.Or(o.Kind, core.SummaryRolling))),
			attribute.String("bobbin.summary.trigger", o.Trigger), attribute.String("bobbin.summary.strategy", turn.Profile.Policy.Strategy),
			attribute.Int("bobbin.summary.messages", o.Messages), attribute.Int("bobbin.summary.tokens_before", o.Tokens),
		)}
	})
	return ctx, func(m compaction.Made) {
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
		t.add("summaries_total", 1, kind, o.Trigger, strategy, string(m.Outcome))
		t.observe("summary_duration_seconds", time.Since(start).Seconds(), strategy, string(m.Outcome))
		switch m.Outcome {
		case compaction.OutcomeFallback:
			t.add("summary_fallbacks_total", 1, m.Cause)
			t.add("context_rungs_total", 1, rungLabel(rungWithoutModel))
			t.observe("summary_tokens", float64(m.Summary.TokenCount), strategy)
		case compaction.OutcomeMade:
			t.observe("summary_tokens", float64(m.Summary.TokenCount), strategy)
		}
	}
}

// Committed counts the commit of a summary, or its failure.
func (t *Telemetry) Committed(_ context.Context, c compaction.Commit) {
	switch {
	case errors.Is(c.Err, core.ErrStale):
		t.add("summary_commits_total", 1, "stale")
		return
	case c.Err != nil:
		t.add("summary_commits_total", 1, "failed")
		return
	}
	if c.Summary.State == core.SummaryPrepared {
		t.add("summary_commits_total", 1, "prepared")
		return
	}
	t.add("summary_commits_total", 1, "stored")
	if saved := c.Before.Total - c.After.Total; saved > 0 {
		t.add("summary_saved_tokens_total", float64(saved), t.labels.modelLabel(c.Turn.Profile.Model.Info().Name))
	}
}
