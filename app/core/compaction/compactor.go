package compaction

import (
	"cmp"
	"context"

	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
)

// Compactor makes notes on the older part of a run's tool loop (REQUIREMENTS L3).
// Implementations are safe for concurrent use.
type Compactor interface {
	// Compact returns notes of at most req.Limit tokens on req.Messages, which begin
	// with the run's question, extending req.Previous. Whatever the error is, the loop
	// stays as it is and the run goes on.
	Compact(ctx context.Context, t Turn, req summarize.Request) (summarize.Result, error)
}

// RuleCompactor is the Compactor that needs no model.
type RuleCompactor struct{ rules *summarize.Summarizer }

// NewRuleCompactor returns the Compactor.
func NewRuleCompactor(count counter) *RuleCompactor {
	return &RuleCompactor{summarize.NewLoop(summarize.NewSteps(count), count)}
}

// Compact makes the notes.
func (c *RuleCompactor) Compact(ctx context.Context, _ Turn, req summarize.Request) (summarize.Result, error) {
	return c.rules.Summarize(ctx, req)
}

// ModelCompactor is the Compactor that has a model write the notes: that of
// compaction.summary_model, else the one that writes the agent's summaries. Where no
// model may or can be asked, and for agents that want none, rules make them.
type ModelCompactor struct {
	options Options
	rules   *RuleCompactor
}

// NewModelCompactor returns the Compactor. Of the options it uses Models, Counter,
// Calibrator, Logger and Budget.
func NewModelCompactor(o Options) *ModelCompactor {
	return &ModelCompactor{options: o, rules: NewRuleCompactor(o.Counter)}
}

// Compact makes the notes.
func (c *ModelCompactor) Compact(ctx context.Context, t Turn, req summarize.Request) (summarize.Result, error) {
	model, note := c.model(ctx, t)
	if model == nil {
		res, err := c.rules.Compact(ctx, t, req)
		res.Note = cmp.Or(res.Note, note)
		return res, err
	}
	name := model.Info().Name
	strategy := summarize.NewLLM(model, c.options.Counter, func() float64 { return c.options.Calibrator.Estimate(name, t.Session.ID).Factor })
	return summarize.NewLoop(strategy, c.options.Counter).Summarize(ctx, req)
}

// model returns the model that writes the notes; nil if rules make them, with the
// reason unless that is what the agent's file says.
func (c *ModelCompactor) model(ctx context.Context, t Turn) (m llm.Model, note string) {
	name := t.Profile.Loop.SummaryModel
	if kind, ok := summarize.KindOf(t.Profile.Policy.Strategy); ok && !kind.Model && name == "" {
		return nil, ""
	}
	if note := c.options.broke(ctx, t); note != "" {
		return nil, note
	}
	var err error
	if name == "" {
		m, err = c.options.summaryModel(t.Profile)
	} else {
		m, err = c.options.Models.Get(name)
	}
	if err != nil {
		return nil, c.options.unusable(ctx, t, err)
	}
	return m, ""
}
