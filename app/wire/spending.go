package wire

import (
	"context"
	"math"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/runs"
)

// NewBudget returns what keeps spending within the limits of auth.limits.
func NewBudget(cfg config.Config, s Stores) *runs.Budget {
	limits := map[string]runs.DailyLimit{}
	for _, l := range cfg.Auth.Limits {
		limits[l.Key] = runs.DailyLimit{MicroUSD: int64(math.Round(l.USDPerDay * 1e6)), Tokens: int64(l.TokensPerDay)}
	}
	return runs.NewBudget(s.ModelCalls, limits, time.Now)
}

// WarnUnpriced warns of models that agents use and that keys with a limit in US dollars are refused.
func WarnUnpriced(ctx context.Context, d Deps, list []core.Agent) {
	if keys := DollarLimited(d.Config); len(keys) > 0 {
		for _, name := range d.Models.Unpriced(d.Config, list) {
			d.Logger.WarnContext(ctx, "a model without a price is refused to keys with usd_per_day; set input_price and output_price in models, or limit tokens_per_day",
				"model", name, "keys", keys)
		}
	}
}

// DollarLimited returns the names of the keys with a limit in US dollars.
func DollarLimited(cfg config.Config) []string {
	var keys []string
	for _, l := range cfg.Auth.Limits {
		if l.USDPerDay > 0 {
			keys = append(keys, l.Key)
		}
	}
	return keys
}

// Unpriced returns the models without a price that the agents use, for answers and for
// summaries, and the embedding model, sorted.
func (m Models) Unpriced(cfg config.Config, list []core.Agent) []string {
	var names []string
	for _, name := range m.calledNames(cfg, list) {
		entry, err := m.Resolve(name)
		if err == nil && !entry.Info.Priced() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ConfiguredNames returns the models that agents answer with and that summaries are made
// with, and the default.
func (m Models) ConfiguredNames(cfg config.Config, list []core.Agent) []string {
	names := append(AgentModels(list), m.Choice.Model, cfg.ContextSummaryModel)
	for _, agent := range list {
		for _, name := range []*string{agent.Context.SummaryModel, agent.Compaction.SummaryModel} {
			if name != nil {
				names = append(names, *name)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// calledNames returns the configured models and the embedding model.
func (m Models) calledNames(cfg config.Config, list []core.Agent) []string {
	names := m.ConfiguredNames(cfg, list)
	if cfg.EmbeddingModel != "" && cfg.EmbeddingModel != llm.HashingModel {
		names = append(names, m.embeddingName(cfg.EmbeddingModel))
	}
	return names
}

// AgentModels returns the models that the agents answer with, fallbacks included.
func AgentModels(list []core.Agent) []string {
	var names []string
	for _, agent := range list {
		names = append(names, agent.FallbackModels...)
		if agent.Model != "" {
			names = append(names, agent.Model)
		}
	}
	return names
}
