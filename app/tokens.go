package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"unicode/utf8"

	"bobbin/app/core/config"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
)

// TokenCount is how many tokens a text is.
type TokenCount struct {
	Bytes       int    `json:"bytes"`
	Characters  int    `json:"characters"`
	TokenCount  int    `json:"token_count"` // cl100k_base
	Model       string `json:"model"`
	Estimate    int    `json:"estimate"` // the model's own tokens
	Window      int    `json:"window"`   // the model's
	Calibration struct {
		Measured  bool    `json:"measured"` // rests on what the provider counted
		Factor    float64 `json:"factor"`
		Deviation float64 `json:"deviation"`
		Samples   int     `json:"samples"`
	} `json:"calibration"`
}

// CountTokens counts a text exactly in cl100k_base, and estimates it for a model
// ("" = the default one) by what was learned about that so far.
func CountTokens(ctx context.Context, cfg config.Config, logger *slog.Logger, model, text string) (TokenCount, error) {
	a := &App{cfg: cfg, log: logger}
	var err error
	if a.counter, err = tokens.NewCounter(); err != nil {
		return TokenCount{}, fmt.Errorf("token counter: %w", err)
	}
	if err := a.openRegistry(ctx); err != nil {
		return TokenCount{}, err
	}
	name, window, err := a.sizeOf(cmp.Or(model, a.choice.Model))
	if err != nil {
		return TokenCount{}, err
	}
	if err := a.recall(ctx); err != nil {
		logger.WarnContext(ctx, "calibrations not read", "err", err)
	}
	out := TokenCount{
		Bytes: len(text), Characters: utf8.RuneCountInString(text), TokenCount: a.counter.Text(text), Model: name, Window: window,
	}
	estimate := a.ruler.Estimate(name, "")
	out.Estimate = estimate.Apply(out.TokenCount)
	c := &out.Calibration
	c.Measured, c.Factor, c.Deviation, c.Samples = estimate.Measured, estimate.Factor, estimate.Deviation, estimate.Samples
	return out, nil
}

// sizeOf returns the name and the window of a model. It need not be usable: to count
// takes no key.
func (a *App) sizeOf(model string) (name string, window int, err error) {
	m, err := a.models.Get(model)
	if err == nil {
		return m.Info().Name, m.Info().Window, nil
	}
	known := tokens.NewModels(a.log)
	info, ok := known.Lookup(model)
	if !ok {
		return "", 0, err
	}
	a.ruler = tokens.NewCalibrator(known.Factor)
	return model, info.Window, nil
}

// recall reads what was learned about the models' counting, if there is a database
// that knows.
func (a *App) recall(ctx context.Context) (err error) {
	url := a.cfg.Database.URL.Reveal()
	if path, embedded := strings.CutPrefix(url, "sqlite://"); embedded {
		if _, err := os.Stat(path); err != nil {
			return nil // a look makes no database
		}
	}
	database, err := db.Open(ctx, url, a.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if v, err := database.MigrationStatus(ctx); err != nil || v.Current == 0 {
		return err
	}
	rows, err := repositories.NewCalibrations(database.Gorm).All(ctx)
	if err != nil {
		return err
	}
	a.ruler.Restore(rows)
	return nil
}
