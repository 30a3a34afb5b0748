package telemetry

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// modelMetrics are the figures of model calls.
type modelMetrics struct {
	calls      *prometheus.CounterVec
	errors     *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	first      *prometheus.HistogramVec
	input      *prometheus.CounterVec
	output     *prometheus.CounterVec
	reasoning  *prometheus.CounterVec
	cacheRead  *prometheus.CounterVec
	cacheWrite *prometheus.CounterVec
	cost       *prometheus.CounterVec
}

func newModelMetrics() modelMetrics {
	return modelMetrics{
		calls:      counter("model_calls_total", "Calls of models, every try of its own, those that failed included.", "model"),
		errors:     counter("model_errors_total", "Calls of models that failed, by kind.", "model", "kind"),
		duration:   histogram("model_call_duration_seconds", "Time of a call, from the request to the last token.", modelBuckets(), "model"),
		first:      histogram("model_time_to_first_token_seconds", "Time from the request to the first token.", modelBuckets(), "model"),
		input:      counter("model_input_tokens_total", "Tokens of prompts as the provider counted them, cached ones included.", "model"),
		output:     counter("model_output_tokens_total", "Tokens of answers as the provider counted them, reasoning included.", "model"),
		reasoning:  counter("model_reasoning_tokens_total", "Tokens of reasoning, where the provider tells them.", "model"),
		cacheRead:  counter("model_cache_read_tokens_total", "Tokens of prompts that the provider had in its cache.", "model"),
		cacheWrite: counter("model_cache_write_tokens_total", "Tokens of prompts that the provider put into its cache.", "model"),
		cost:       counter("model_cost_usd_total", "Cost of calls in US dollars, of models that have prices.", "model"),
	}
}

func (m modelMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.errors, m.duration, m.first, m.input, m.output, m.reasoning, m.cacheRead, m.cacheWrite, m.cost}
}

// Model returns the model with its calls counted. Name is what its provider calls it.
// Put it under llm.WithRetry, so that every try counts.
func (t *Telemetry) Model(m llm.Model, name string) llm.Model {
	return &model{telemetry: t, under: m, name: name}
}

// model is a model whose calls are counted.
type model struct {
	telemetry *Telemetry
	under     llm.Model
	name      string // what the provider calls it
}

// Info describes the model underneath.
func (m *model) Info() llm.Info { return m.under.Info() }

// Stream is the model's Stream.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		ctx, c := m.begin(ctx, req)
		defer c.end()
		for d, err := range m.under.Stream(ctx, req) {
			c.delta(d, err)
			if !yield(d, err) {
				c.left = true
				return
			}
			if err != nil {
				return
			}
		}
	}
}

// modelCall is one call on its way.
type modelCall struct {
	telemetry *Telemetry
	span      trace.Span
	info      llm.Info
	label     string
	start     time.Time
	first     time.Duration // to the first delta that says something; 0 = none yet
	usage     *core.Usage
	finish    core.FinishReason
	model     string // that answered, as the provider says
	answered  bool   // there was text or a tool call
	left      bool   // who reads the answer has left
	err       error
}

// begin counts a call that begins.
func (m *model) begin(ctx context.Context, req llm.Request) (context.Context, *modelCall) {
	info := m.under.Info()
	ctx, span := m.telemetry.begin(ctx, "chat "+m.name, func() []trace.SpanStartOption {
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
	return ctx, &modelCall{telemetry: m.telemetry, span: span, info: info, label: m.telemetry.labels.model(info.Name), start: time.Now()}
}

// delta takes note of a piece of the answer.
func (c *modelCall) delta(d llm.Delta, err error) {
	if err != nil {
		c.err = err
		return
	}
	if c.first == 0 && (d.Text != "" || d.Reasoning != "" || d.Part != nil || d.ToolCall != nil) {
		c.first = max(time.Since(c.start), 1)
	}
	c.answered = c.answered || d.ToolCall != nil || strings.TrimSpace(d.Text) != ""
	if d.Usage != nil {
		c.usage = d.Usage
	}
	if d.Finish != "" {
		c.finish, c.model = d.Finish, d.Model
	}
}

// end ends the call's span and counts it.
func (c *modelCall) end() {
	if c.span.IsRecording() {
		c.describe()
	}
	c.span.End()
	m := c.telemetry.models
	m.calls.WithLabelValues(c.label).Inc()
	if kind := c.kind(); kind != "" {
		m.errors.WithLabelValues(c.label, string(kind)).Inc()
	}
	m.duration.WithLabelValues(c.label).Observe(time.Since(c.start).Seconds())
	if c.first > 0 {
		m.first.WithLabelValues(c.label).Observe(c.first.Seconds())
	}
	if c.usage == nil {
		return
	}
	add(m.input, c.label, c.usage.InputTokens)
	add(m.output, c.label, c.usage.OutputTokens)
	add(m.reasoning, c.label, c.usage.ReasoningTokens)
	add(m.cacheRead, c.label, c.usage.CacheReadTokens)
	add(m.cacheWrite, c.label, c.usage.CacheWriteTokens)
	if cost := c.info.Cost(c.usage); cost != nil && *cost > 0 {
		m.cost.WithLabelValues(c.label).Add(float64(*cost) / 1e6)
	}
}

// describe says in the span what came of the call. Nothing of what was said is in it.
func (c *modelCall) describe() {
	if kind := c.kind(); kind != "" {
		fail(c.span, string(kind))
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

// kind returns why the call failed; empty = it did not.
func (c *modelCall) kind() llm.ErrorKind {
	if e := llm.AsError(c.err); e != nil {
		return e.Kind
	}
	switch {
	case c.err != nil:
		return llm.KindUnknown
	case c.left:
		return llm.KindCanceled
	case c.answered:
		return ""
	case c.finish == core.FinishContentFilter:
		return llm.KindContentFilter
	default:
		return llm.KindEmpty
	}
}

// add adds tokens, which a provider may have told wrong.
func add(to *prometheus.CounterVec, label string, tokens int) {
	to.WithLabelValues(label).Add(float64(max(tokens, 0)))
}
