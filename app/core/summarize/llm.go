package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/cut"
	"bobbin/app/core/llm"
)

// Sizes that a model which does not tell gets.
const (
	defaultWindow = 8_192 // tokens (W9)
	defaultFactor = 1.1   // until five calls were measured (CONTEXT § 5)
)

const (
	temperature     = 0.2
	reasoningTokens = 2_048 // room for thoughts beside the summary
	promptOverhead  = 11    // tokens around a system block and a message (B8)
	leastMaterial   = 64    // tokens of transcript under which a call is not worth it
	maxSteps        = 32    // most chunks of one summary
	maxTightened    = 2     // how often the provider's "too long" is answered with smaller chunks
)

// LLM is the strategy that asks a language model. Safe for concurrent use.
type LLM struct {
	model   llm.Model
	count   counter
	factor  func() float64
	prompts prompts
}

// NewLLM returns the strategy for a model of its own. factor returns how many of
// the model's tokens one cl100k_base token is at present, its margin included; nil
// takes what the model expects of itself, times 1.1.
func NewLLM(model llm.Model, count counter, factor func() float64) *LLM {
	return &LLM{model: model, count: count, factor: factor, prompts: newPrompts()}
}

// Name is StrategyLLM.
func (l *LLM) Name() string { return StrategyLLM }

// Summarize asks the model for a summary, in several steps when the material does
// not fit its window. Errors are of the model, or say why its answers were refused.
func (l *LLM) Summarize(ctx context.Context, req Request) (Result, error) {
	res, err := l.summarize(ctx, req, false)
	res.Content = disowned(res.Content)
	res.Tokens = l.count.Text(res.Content)
	return res, err
}

// summarize is Summarize; with ledger the model is told that code appends lists.
func (l *LLM) summarize(ctx context.Context, req Request, ledger bool) (Result, error) {
	j := l.newJob(req, ledger)
	err := j.fold(ctx)
	res := Result{Strategy: StrategyLLM, Model: l.model.Info().Name, Calls: j.calls}
	if err != nil {
		return res, err
	}
	res.Content, res.Tokens = j.summary, l.count.Text(j.summary)
	return res, nil
}

// job is one summary in the making. One goroutine owns it.
type job struct {
	*LLM
	req       Request
	system    string
	fixed     int // tokens of the system text and, at most, of the request around the data
	language  string
	limit     int // most tokens of the summary: the request's, or what the model can say
	ask       int // tokens asked for
	maxOutput int // of a call, in the model's tokens
	window    int // of the model, in its tokens
	scale     float64
	tightened int
	summary   string // what was summarized so far
	calls     []core.ModelCall
}

func (l *LLM) newJob(req Request, ledger bool) *job {
	info := l.model.Info()
	j := &job{LLM: l, req: req, language: language(req.Messages, req.Previous), window: info.Window, scale: l.currentFactor(info), summary: req.Previous}
	if j.window <= 0 {
		j.window = defaultWindow
	}
	j.req.Focus = harmless(cut.Line(req.Focus, 1_000))
	j.measure()
	j.system = l.prompts.system(req.Preset, systemData{Tokens: cmp.Or(req.AskFor, req.Limit), Ledger: ledger})
	frame := l.prompts.request(requestData{Previous: "-", Focus: j.req.Focus, Language: j.language,
		Parts: maxSteps, Part: maxSteps, Tokens: j.ask, Rejected: string(errNotSmaller)})
	j.fixed = l.count.Text(j.system) + l.count.Text(frame) + promptOverhead
	return j
}

// measure works out from window and scale what the model can say and what is
// asked of it.
func (j *job) measure() {
	wanted := int(float64(max(2*j.req.Limit, j.req.Limit+reasoningTokens)) * j.scale)
	j.maxOutput = max(min(wanted, j.window/4), 1)
	if most := j.model.Info().MaxOutput; most > 0 {
		j.maxOutput = min(j.maxOutput, most)
	}
	j.limit = max(min(j.req.Limit, int(float64(j.maxOutput)/j.scale)), 1)
	j.ask = j.limit
	if j.req.AskFor > 0 {
		j.ask = min(j.req.AskFor, j.limit)
	}
	if j.req.Replaces > 0 { // a summary nearly as large as its material gains nothing
		j.ask = max(min(j.ask, j.req.Replaces*3/4), 1)
	}
}

func (l *LLM) currentFactor(info llm.Info) float64 {
	if l.factor != nil {
		if f := l.factor(); f > 0 {
			return f
		}
	}
	if info.PriorFactor > 0 {
		return info.PriorFactor * defaultFactor
	}
	return defaultFactor
}

// prompt returns how many tokens a prompt may have.
func (j *job) prompt() int { return int(float64(j.window-j.maxOutput) / j.scale) }

// send makes one call and records it. The prompt is counted once more as it is
// sent, as calibration compares it with the provider's count.
func (j *job) send(ctx context.Context, text string) (llm.Response, error) {
	info := j.model.Info()
	t := temperature
	start := time.Now()
	res, err := llm.Collect(j.model.Stream(ctx, llm.Request{
		System:          []string{j.system},
		Messages:        []llm.Message{{Role: core.RoleUser, Content: text}},
		MaxOutputTokens: j.maxOutput,
		Temperature:     &t,
	}), nil)
	call := core.ModelCall{
		Purpose: core.PurposeSummary, Model: info.Name, Provider: info.Provider,
		Estimated: j.count.Text(j.system) + j.count.Text(text) + promptOverhead,
		Cost:      info.Cost(res.Usage), FinishReason: res.Finish, Error: errorKind(err), Duration: time.Since(start), CreatedAt: core.Now(),
	}
	if res.Usage != nil {
		call.Usage = *res.Usage
	}
	j.calls = append(j.calls, call)
	if err != nil {
		return res, fmt.Errorf("summarize with %s: %w", info.Name, err)
	}
	return res, nil
}

func errorKind(err error) string {
	var e *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return string(e.Kind)
	default:
		return string(llm.KindUnknown)
	}
}
