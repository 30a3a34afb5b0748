package telemetry

import (
	"context"
	"iter"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// Model returns the model with its calls counted. Put it under llm.WithRetry, so
// that every try counts.
func (t *Telemetry) Model(m llm.Model) llm.Model { return &model{telemetry: t, under: m} }

// model is a model whose calls are counted.
type model struct {
	telemetry *Telemetry
	under     llm.Model
}

// Info describes the model underneath.
func (m *model) Info() llm.Info { return m.under.Info() }

// Stream is the model's Stream.
func (m *model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		c := m.telemetry.beginCall(m.under.Info())
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
	info      llm.Info
	label     string
	start     time.Time
	first     time.Duration // to the first delta that says something; 0 = none yet
	usage     *core.Usage
	finish    core.FinishReason
	answered  bool // there was text or a tool call
	left      bool // who reads the answer has left
	err       error
}

func (t *Telemetry) beginCall(info llm.Info) *modelCall {
	return &modelCall{telemetry: t, info: info, label: t.labels.model(info.Name), start: time.Now()}
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
		c.finish = d.Finish
	}
}

// end counts the call.
func (c *modelCall) end() {
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
