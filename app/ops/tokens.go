package ops

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"unicode/utf8"

	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/wire"
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
	counter := tokens.NewCounter()
	models, err := wire.OpenModels(ctx, cfg, wire.ModelOptions{Counter: counter, Backoff: llm.Backoff{Logger: logger}})
	if err != nil {
		return TokenCount{}, err
	}
	name, window, err := sizeOf(&models, cmp.Or(model, models.Choice.Model), logger)
	if err != nil {
		return TokenCount{}, err
	}
	if err := restoreCalibrations(ctx, cfg, models.Calibrator, logger); err != nil {
		logger.WarnContext(ctx, "calibrations not read", "err", err)
	}
	out := TokenCount{
		Bytes: len(text), Characters: utf8.RuneCountInString(text), TokenCount: counter.Text(text), Model: name, Window: window,
	}
	estimate := models.Calibrator.Estimate(name, "")
	out.Estimate = estimate.Apply(out.TokenCount)
	c := &out.Calibration
	c.Measured, c.Factor, c.Deviation, c.Samples = estimate.Measured, estimate.Factor, estimate.Deviation, estimate.Samples
	return out, nil
}

// sizeOf returns the name and the window of a model. It need not be usable: to count
// takes no key.
func sizeOf(models *wire.Models, model string, logger *slog.Logger) (name string, window int, err error) {
	m, err := models.Get(model)
	if err == nil {
		return m.Info().Name, m.Info().Window, nil
	}
	known := tokens.NewModels(logger)
	info, ok := known.Lookup(model)
	if !ok {
		return "", 0, err
	}
	models.Calibrator = tokens.NewCalibrator(known.Factor)
	return model, info.Window, nil
}

// restoreCalibrations reads what was learned about the models' counting, if there is a
// database that knows.
func restoreCalibrations(ctx context.Context, cfg config.Config, c *tokens.Calibrator, logger *slog.Logger) (err error) {
	if path, embedded := wire.SQLiteFile(cfg); embedded {
		if _, err := os.Stat(path); err != nil {
			return nil // a look makes no database
		}
	}
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
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
	c.Restore(rows)
	return nil
}
