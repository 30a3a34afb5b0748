package eval

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/demo"
	"bobbin/app/core/tokens"
	"bobbin/app/wire"
)

// setModel finds the model that is stood in for.
func (v *evaluator) setModel(agent core.Agent) error {
	name := cmp.Or(v.Model, agent.Model, EvaluationModel)
	if v.Window != 0 && v.Window < MinEvaluationWindow {
		return core.Errorf(core.ErrInvalid, "--window: %d is too small; at least %d", v.Window, MinEvaluationWindow)
	}
	v.info = llm.Info{Name: name, Provider: stageProvider, Window: v.Window, PriorFactor: 1}
	known, ok := tokens.Lookup(name)
	switch i := slices.IndexFunc(v.cfg.Models, func(m config.Model) bool { return m.Name == name }); {
	case i >= 0:
		m := v.cfg.Models[i]
		known, _ = tokens.Lookup(m.Model)
		v.info.Window = cmp.Or(v.Window, m.ContextWindow, known.Window)
		v.info.MaxOutput, v.info.PriorFactor = cmp.Or(m.MaxOutputTokens, known.MaxOutput), cmp.Or(m.PriorFactor(), known.Factor, 1)
	case name == "demo":
		d := demo.New(v.count, 0).Info()
		v.info.Window, v.info.MaxOutput = cmp.Or(v.Window, d.Window), d.MaxOutput
	case ok:
		v.info.Window, v.info.MaxOutput, v.info.PriorFactor = cmp.Or(v.Window, known.Window), known.MaxOutput, cmp.Or(known.Factor, 1)
	case v.Window == 0:
		return core.Errorf(core.ErrInvalid, "--model: %q is not known; say how large its window is with --window", name)
	}
	v.info.Window = cmp.Or(v.info.Window, tokens.DefaultWindow)
	v.info.MaxOutput = min(v.info.MaxOutput, v.info.Window)
	v.report.Model, v.report.Window = name, v.info.Window
	return nil
}

// setSummarizer opens who makes the summaries.
func (v *evaluator) setSummarizer(ctx context.Context) error {
	switch v.Summarizer {
	case SummarizerExtractive:
		return nil
	case SummarizerScripted:
		v.cfg.Limits.SummaryTime, v.cfg.Limits.BackgroundSummaryTime = time.Hour, time.Hour // by no clock, so that each replay is the same
		v.sums = scripted{demo.New(v.count, 0), v.info.Window}
		return nil
	}
	models, err := wire.OpenModels(ctx, v.cfg, wire.ModelOptions{Counter: v.count, Logger: v.log})
	if err != nil {
		return err
	}
	v.cfg.Limits.SummaryTime = max(v.cfg.Limits.SummaryTime, time.Minute) // nobody waits
	if v.sums, err = models.Get(v.Summarizer); err != nil {
		return core.Errorf(core.ErrInvalid, "--summarizer: %v", err)
	}
	return nil
}

// scripted is the offline model as large as the one that is stood in for.
type scripted struct {
	*demo.Model
	window int
}

// Info describes the model.
func (s scripted) Info() llm.Info {
	info := s.Model.Info()
	info.Name, info.Provider, info.Window = SummarizerScripted, stageProvider, s.window
	return info
}

// setPolicies makes an agent for each policy.
func (v *evaluator) setPolicies(agent core.Agent) error {
	own := cmp.Or(agent.Context.Policy, contextwindow.DefaultPolicy)
	if len(v.Policies) == 0 {
		v.Policies = []string{own}
	}
	for i, name := range v.Policies {
		if slices.Contains(v.Policies[:i], name) {
			return core.Errorf(core.ErrInvalid, "--policy: %s is there twice", name)
		}
		a := agent
		if name != own { // the preset as it is
			a.Context = core.ContextSettings{Policy: name}
		}
		a.Compaction.SummaryModel, a.Context.SummaryModel = nil, new(stageSummarizer)
		if v.sums == nil {
			a.Context.Strategy = new(SummarizerExtractive)
		}
		if _, err := contextwindow.Resolve(wire.GlobalContext(v.cfg), a.Context); err != nil {
			return core.Errorf(core.ErrInvalid, "--policy %s: %s", name, strings.TrimPrefix(err.Error(), "context.policy "))
		}
		v.agents = append(v.agents, a)
	}
	return nil
}
