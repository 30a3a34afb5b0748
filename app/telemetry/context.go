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

// Rungs of the ladder that have a label of their own here.
const (
	rungSummarize    = 2
	rungDeeper       = 3
	rungWithoutModel = 5
)

func rungNames() []string {
	return []string{0: "recall", 1: "mask", 2: "summarize", 3: "summarize_deeper", 4: "cut_summary", 5: "without_model", 6: "shorten", 7: "leave_out", 8: "refuse"}
}

// Fitted counts the measures that made a prompt fit.
func (t *Telemetry) Fitted(_ context.Context, _ compaction.Turn, d contextwindow.Decision, _ error) {
	for _, rung := range d.Rungs {
		if rung != rungSummarize && rung != rungDeeper { // Summarizing counts these
			t.add("context_rungs_total", 1, rungNames()[rung])
		}
	}
}

// Sending records a prompt that is sent to a model.
func (t *Telemetry) Sending(_ context.Context, turn compaction.Turn, d contextwindow.Decision, sent contextwindow.PromptSize) {
	model, used := t.labels.modelLabel(turn.Profile.Model.Info().Name), float64(sent.Used(d))
	t.observe("context_prompt_tokens", used, model)
	n := len(d.Pinned)
	for _, slots := range [][]contextwindow.Slot{d.History, d.Run} {
		for _, s := range slots {
			if s.Place != core.PlaceLeftOut {
				n++
			}
		}
	}
	t.observe("context_window_messages", float64(n), model)
	t.gauge("context_window_tokens", model).Set(float64(d.Budget.Window))
	t.gauge("context_usable_tokens", model).Set(float64(d.Budget.Usable))
	if d.Budget.Usable > 0 {
		t.observe("context_usage_ratio", used/float64(d.Budget.Usable), model)
	}
	for outcome, n := range map[string]int{
		"kept": sent.Thoughts.Kept, "compacted": sent.Thoughts.Compacted, "changed": sent.Thoughts.Changed,
		"other_model": sent.Thoughts.OtherModel, "unbound": sent.Thoughts.Unbound,
	} {
		if n > 0 {
			t.add("context_thoughts_total", float64(n), model, outcome)
		}
	}
	if summary := sent.Of[contextwindow.SectionSummary]; summary > 0 {
		t.observe("context_summary_tokens", float64(d.Shown(summary)), model)
	}
}

// CountOf is Count for a counter of a model.
func (t *Telemetry) CountOf(model string, counter core.Counter, n int, labels ...string) {
	t.Count(counter, n, append([]string{t.labels.modelLabel(model)}, labels...)...)
}

// Summarizing counts a summary that is begun; the caller calls the returned function with its
// outcome.
func (t *Telemetry) Summarizing(ctx context.Context, turn compaction.Turn, o contextwindow.Order) (context.Context, func(compaction.Made)) {
	start := time.Now()
	strategy, kind := turn.Profile.Policy.Strategy, string(cmp.Or(o.Kind, core.SummaryRolling))
	t.add("context_rungs_total", 1, rungNames()[o.Rung])
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
			t.add("context_rungs_total", 1, rungNames()[rungWithoutModel])
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
