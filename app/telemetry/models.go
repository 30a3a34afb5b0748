package telemetry

import (
	"context"
	"iter"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Model returns the model with its calls counted. Name is the provider's name of it. Put it
// under llm.WithRetry, so that every try counts.
func (t *Telemetry) Model(m llm.Model, name string) llm.Model {
	return &model{telemetry: t, under: m, name: name}
}

// model is a model whose calls are counted.
type model struct {
	telemetry *Telemetry
	under     llm.Model
	name      string // what the provider calls it
}

// Info describes the underlying model.
func (m *model) Info() llm.Info { return m.under.Info() }

// Stream is the model's Stream.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		info := m.under.Info()
		ctx, span := m.telemetry.startSpan(ctx, "chat "+m.name, func() []trace.SpanStartOption {
			attributes := []attribute.KeyValue{
				semconv.GenAIOperationNameChat, providerName(info.Provider), semconv.GenAIRequestModel(m.name), semconv.GenAIRequestStream(true),
				attribute.String("bobbin.model", info.Name),
			}
			if req.MaxOutputTokens > 0 {
				attributes = append(attributes, semconv.GenAIRequestMaxTokens(req.MaxOutputTokens))
			}
			if req.Temperature != nil {
				attributes = append(attributes, semconv.GenAIRequestTemperature(*req.Temperature))
			}
			return []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...)}
		})
		c := &modelCall{telemetry: m.telemetry, span: span, info: info, label: m.telemetry.labels.modelLabel(info.Name), start: time.Now()}
		defer c.endCall()
		for d, err := range m.under.Stream(ctx, req) {
			c.recordDelta(d, err)
			if !yield(d, err) {
				c.abandoned = true
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// modelCall is one call in progress.
type modelCall struct {
	telemetry *Telemetry
	span      trace.Span
	info      llm.Info
	label     string
	start     time.Time
	first     time.Duration // to the first delta with content; 0 = none yet
	usage     *core.Usage
	finish    core.FinishReason
	model     string // that answered, as the provider says
	answered  bool   // there was text, a tool call or a compaction
	abandoned bool   // the reader stopped before the end
	err       error
}

func (c *modelCall) recordDelta(d llm.Delta, err error) {
	if err != nil {
		c.err = err
		return
	}
	if c.first == 0 && (d.Text != "" || d.Reasoning != "" || d.Part != nil || d.Compaction != nil || d.ToolCall != nil) {
		c.first = max(time.Since(c.start), 1)
	}
	c.answered = c.answered || d.ToolCall != nil || d.Compaction != nil || strings.TrimSpace(d.Text) != ""
	if d.Usage != nil {
		c.usage = d.Usage
	}
	if d.Finish != "" {
		c.finish, c.model = d.Finish, d.Model
	}
}

func (c *modelCall) endCall() {
	kind := c.errorKind()
	if c.span.IsRecording() {
		if kind != "" {
			failSpan(c.span, string(kind))
		}
		if c.first > 0 {
			c.span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(c.first.Seconds()))
		}
		if c.finish != "" {
			c.span.SetAttributes(semconv.GenAIResponseFinishReasons(string(c.finish)))
		}
		if c.model != "" {
			c.span.SetAttributes(semconv.GenAIResponseModel(c.model))
		}
		if u := c.usage; u != nil {
			c.span.SetAttributes(semconv.GenAIUsageInputTokens(u.InputTokens), semconv.GenAIUsageOutputTokens(u.OutputTokens),
				semconv.GenAIUsageReasoningOutputTokens(u.ReasoningTokens),
				semconv.GenAIUsageCacheReadInputTokens(u.CacheReadTokens), semconv.GenAIUsageCacheCreationInputTokens(u.CacheWriteTokens))
		}
	}
	c.span.End()
	t := c.telemetry
	t.add("model_calls_total", 1, c.label)
	if kind != "" {
		t.add("model_errors_total", 1, c.label, string(kind))
	}
	t.observe("model_call_duration_seconds", time.Since(c.start).Seconds(), c.label)
	if c.first > 0 {
		t.observe("model_time_to_first_token_seconds", c.first.Seconds(), c.label)
	}
	u := c.usage
	if u == nil {
		return
	}
	for name, n := range map[string]int{
		"input": u.InputTokens, "output": u.OutputTokens, "reasoning": u.ReasoningTokens, "cache_read": u.CacheReadTokens, "cache_write": u.CacheWriteTokens,
	} {
		t.add("model_"+name+"_tokens_total", float64(max(n, 0)), c.label) // a provider may report a negative number
	}
	if cost := c.info.Cost(u); cost != nil && *cost > 0 {
		t.add("model_cost_usd_total", float64(*cost)/1e6, c.label)
	}
}

// errorKind returns why the call failed; empty = it did not.
func (c *modelCall) errorKind() llm.ErrorKind {
	if e := llm.AsError(c.err); e != nil {
		return e.Kind
	}
	switch {
	case c.err != nil:
		return llm.KindUnknown
	case c.abandoned:
		return llm.KindCanceled
	case c.answered:
		return ""
	case c.finish == core.FinishContentFilter:
		return llm.KindContentFilter
	default:
		return llm.KindEmpty
	}
}
