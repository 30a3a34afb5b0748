package wire

import (
	"context"
	"log/slog"
	"math"
	"os"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/app/core/llm/demo"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/app/core/llm/responses"
	"bobbin/app/core/tokens"
	"bobbin/app/runs"
)

// Models are the language models of the settings.
type Models struct {
	*llm.Registry

	Choice     llm.Choice // which model is the default, and why
	Calibrator *tokens.Calibrator
}

// ModelOptions are what OpenModels needs besides the settings: Counter and Logger are required.
type ModelOptions struct {
	Counter llm.TokenCounter
	Logger  *slog.Logger
	// Observe returns the model with its calls counted, under that label; nil = none are.
	Observe func(m llm.Model, label string) llm.Model
}

// OpenModels builds the registry of models and chooses the default one. It needs no
// database; models are opened when they are used.
func OpenModels(ctx context.Context, cfg config.Config, o ModelOptions) (Models, error) {
	m := Models{Choice: llm.Detect(ctx, cfg.DefaultLLM, os.Getenv, func(ctx context.Context, ollama string) ([]string, error) {
		return providerhttp.Options{BaseURL: ollama + "/v1"}.ListModels(ctx)
	})}
	var err error
	entries := make([]llm.Entry, 0, len(cfg.Models))
	for _, m := range cfg.Models {
		entries = append(entries, llm.Entry{
			Info: llm.Info{
				Name: m.Name, Provider: m.Provider, Window: m.ContextWindow, MaxOutput: m.MaxOutputTokens, PriorFactor: m.PriorFactor(),
				InputPrice: m.InputPrice, OutputPrice: m.OutputPrice, CacheReadPrice: m.CacheReadPrice, CacheWritePrice: m.CacheWritePrice,
				Documents: nativeDocuments(cfg, m.Documents), Prefix: llm.PrefixContract(m.PrefixContract), OpensThought: m.OpensThought,
			},
			Model: m.Model, Responses: m.API == config.APIResponses, BaseURL: m.BaseURL, APIKeyEnv: m.APIKeyEnv, Region: m.Region, Project: m.Project,
			Thinking: m.ThinkingBudget, SeesImages: m.Images, Slots: m.Slots, FirstByteTime: m.FirstByteTime, IdleTime: m.IdleTime, MaxTokensField: m.MaxTokensField,
		})
	}
	observe := o.Observe
	if observe == nil {
		observe = func(m llm.Model, _ string) llm.Model { return m }
	}
	var servers llm.Servers // that models share
	m.Registry, err = llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) {
		if e.Provider == llm.ProviderDemo {
			return observe(demo.New(o.Counter, demo.Delay), e.Model), nil
		}
		m, err := openProvider(e, os.Getenv(e.APIKeyEnv))
		if err != nil {
			return nil, err
		}
		return llm.WithRetry(servers.Share(observe(m, e.Model), e), o.Logger), nil
	}, llm.Defaults{
		Model: m.Choice.Model, Env: os.Getenv,
		Lookup: func(model string) (window, maxOutput int, factor float64, ok bool) {
			info, ok := tokens.Assume(model)
			return info.Window, info.MaxOutput, info.Factor, ok
		},
		Unknown: func(model string, window int) { //nolint:contextcheck // it is of the model, not of the start
			o.Logger.WarnContext(context.Background(), "unknown model, assuming a small context window; set context_window under models", "model", model, "window", window)
		},
		Images: tokens.SeesImages,
		Documents: func(model string) llm.Documents {
			reads := tokens.ReadsPDF(model)
			return nativeDocuments(cfg, &reads)
		},
	})
	if err != nil {
		return Models{}, err
	}
	m.Calibrator = tokens.NewCalibrator(func(model string) float64 {
		entry, err := m.Resolve(model)
		if err != nil || entry.PriorFactor <= 0 {
			return 1
		}
		return entry.PriorFactor
	})
	m.Calibrator.Warn = func(model string, ratio float64) { //nolint:contextcheck // it is of all calls, not of the start
		o.Logger.WarnContext(context.Background(), "the provider reports a number of prompt tokens that cannot be true; such counts are not used", "model", model, "ratio", ratio)
	}
	return m, nil
}

// nativeDocuments returns which PDFs a model gets as files that reads them or not; empty =
// the settings do not say whether it does.
func nativeDocuments(cfg config.Config, reads *bool) llm.Documents {
	switch {
	case reads == nil:
		return ""
	case *reads:
		return llm.Documents(cfg.Files.NativePDF)
	default:
		return llm.DocumentsNever
	}
}

// openProvider opens a model behind HTTP.
func openProvider(e llm.Entry, key string) (llm.Model, error) {
	o := providerhttp.Options{
		Name: e.Name, Model: e.Model, Provider: e.Provider, BaseURL: e.BaseURL, APIKey: key, Info: e.Info,
		Timeouts: providerhttp.Timeouts{Headers: e.FirstByteTime, Idle: e.IdleTime}, Thinking: e.Thinking, LegacyMaxTokens: e.TakesMaxTokens(),
	}
	switch {
	case e.Provider == llm.ProviderAnthropic:
		return anthropic.New(o)
	case e.Provider == llm.ProviderBedrock:
		return anthropic.NewOnBedrock(o, e.Region, nil)
	case e.Provider == llm.ProviderVertex:
		return anthropic.NewOnVertex(o, nil)
	case e.Provider == llm.ProviderLangchainOllama:
		return langchain.New(o)
	case e.Responses:
		return responses.New(o)
	default:
		return openai.New(o)
	}
}

// Window returns how long the prompts for the default model are planned, answer
// included, and what the operator should set where that is a guess.
func (m Models) Window() (size int, hint string) {
	model, err := m.Get("")
	if err != nil {
		return 0, "" // the start has refused it
	}
	info := model.Info()
	switch {
	case info.WindowFrom == llm.WindowAssumed:
		hint = "assumed, as the model is not known: set context_window in models"
	case info.Provider == llm.ProviderOllama && info.WindowFrom == llm.WindowKnown && os.Getenv("OLLAMA_CONTEXT_LENGTH") == "":
		hint = "the default of Ollama: if yours is larger, set OLLAMA_CONTEXT_LENGTH here, too"
	}
	return info.Window, hint
}

// NewBudget returns what keeps spending within the limits of auth.limits.
func NewBudget(cfg config.Config, s Stores) *runs.Budget {
	limits := map[string]runs.DailyLimit{}
	for _, l := range cfg.Auth.Limits {
		limits[l.Key] = runs.DailyLimit{MicroUSD: int64(math.Round(l.USDPerDay * 1e6)), Tokens: int64(l.TokensPerDay)}
	}
	return runs.NewBudget(s.ModelCalls, limits, time.Now)
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
