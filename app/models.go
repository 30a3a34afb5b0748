package app

import (
	"context"
	"fmt"
	"os"
	"time"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/app/core/llm/demo"
	"bobbin/app/core/llm/langchain"
	"bobbin/app/core/tokens"
)

// openModels builds the registry of models, finds the default one, and remembers
// what was learned about their counting.
func (a *App) openModels(ctx context.Context) error {
	if err := a.openRegistry(ctx); err != nil {
		return err
	}
	rows, err := a.repos.calibrations.All(ctx)
	if err != nil {
		return fmt.Errorf("load calibrations: %w", err)
	}
	a.ruler.Restore(rows)
	if _, err := a.models.Get(""); err != nil {
		return fmt.Errorf("default model: %w", err)
	}
	return nil
}

// openRegistry builds the registry of models; it needs no database.
func (a *App) openRegistry(ctx context.Context) error {
	known := tokens.NewModels(a.log)
	a.choice = llm.Detect(ctx, a.cfg.DefaultLLM, os.Getenv, llm.OllamaModels)
	entries := make([]llm.Entry, 0, len(a.cfg.Models))
	for _, m := range a.cfg.Models {
		entries = append(entries, llm.Entry{
			Name: m.Name, Provider: m.Provider, Model: m.Model, BaseURL: m.BaseURL, APIKeyEnv: m.APIKeyEnv,
			Window: m.ContextWindow, MaxOutput: m.MaxOutputTokens, PriorFactor: m.PriorFactor(),
			InputPrice: m.InputPrice, OutputPrice: m.OutputPrice, CacheReadPrice: m.CacheReadPrice, CacheWritePrice: m.CacheWritePrice,
			Thinking: m.ThinkingBudget, Images: m.Images,
		})
	}
	var err error
	a.models, err = llm.NewRegistry(entries, a.openModel, llm.Defaults{
		Model: a.choice.Model, Env: os.Getenv,
		Lookup: func(model string) (window, maxOutput int, factor float64, ok bool) {
			info, ok := known.Assume(model)
			return info.Window, info.MaxOutput, info.Factor, ok
		},
		Unknown: known.Warn,
		Images:  tokens.SeesImages,
	})
	if err != nil {
		return err
	}
	a.ruler = tokens.NewCalibrator(a.priorFactor)
	return nil
}

// Window says how long the prompts for the default model are planned, answer
// included, and where somebody has to say it.
func (a *App) Window() (size int, hint string) {
	m, err := a.models.Get("")
	if err != nil {
		return 0, "" // New has refused it
	}
	info := m.Info()
	switch {
	case info.WindowFrom == llm.WindowAssumed:
		hint = "assumed, as the model is not known: set context_window in models"
	case info.Provider == "ollama" && info.WindowFrom == llm.WindowKnown && os.Getenv("OLLAMA_CONTEXT_LENGTH") == "":
		hint = "as Ollama has by itself: if yours has more, set OLLAMA_CONTEXT_LENGTH here, too"
	}
	return info.Window, hint
}

// priorFactor returns what a model's counts are expected to be, before any were seen.
func (a *App) priorFactor(model string) float64 {
	entry, err := a.models.Resolve(model)
	if err != nil || entry.PriorFactor <= 0 {
		return 1
	}
	return entry.PriorFactor
}

// openModel opens one model of the registry, with retries around it.
func (a *App) openModel(e llm.Entry) (llm.Model, error) {
	if e.Provider == "demo" {
		return a.measured(demo.New(demo.WithCounter(a.counter.Text)), e), nil
	}
	m, err := openProvider(e, os.Getenv(e.APIKeyEnv))
	if err != nil {
		return nil, err
	}
	return llm.WithRetry(a.measured(m, e), llm.Backoff{Logger: a.log}), nil
}

// measured returns the model with its calls counted, where there is somebody to count.
func (a *App) measured(m llm.Model, e llm.Entry) llm.Model {
	if a.telemetry == nil {
		return m
	}
	return a.telemetry.Model(m, e.Model)
}

// openProvider opens a model behind HTTP.
func openProvider(e llm.Entry, key string) (llm.Model, error) {
	if e.Provider == anthropic.Provider {
		return anthropic.New(anthropic.Options{
			Name: e.Name, Model: e.Model, BaseURL: e.BaseURL, APIKey: key, Info: e.Info(), Thinking: e.Thinking,
		})
	}
	return langchain.New(langchain.Options{
		Name: e.Name, Model: e.Model, Provider: e.Provider, BaseURL: e.BaseURL, APIKey: key, Info: e.Info(),
	})
}

// How often what was learned about the models' counting is saved, and how long
// the last save may take when the process stops.
const (
	calibrationInterval = 10 * time.Second
	lastSaveTime        = 5 * time.Second
	answerGrace         = 5 * time.Second // requests may end this much later than the runs they wait for
)

// saveCalibrations keeps what was learned about the models' counting. What is lost
// in a crash is learned again in a few calls.
func (a *App) saveCalibrations(ctx context.Context) error {
	ticker := time.NewTicker(calibrationInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			a.saveCalibration(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveTime)
			defer cancel()
			a.saveCalibration(last)
			return nil
		}
	}
}

func (a *App) saveCalibration(ctx context.Context) {
	rows := a.ruler.Changed()
	if len(rows) == 0 {
		return
	}
	if err := a.repos.calibrations.Save(ctx, rows); err != nil {
		a.log.WarnContext(ctx, "calibration not saved", "err", err)
		return
	}
}

// pid is this process's number.
func pid() int { return os.Getpid() }
