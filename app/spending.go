package app

import (
	"context"
	"math"
	"time"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/spend"
	"bobbin/app/titles"
)

// newLimiter returns what keeps spending within the limits of auth.limits.
func (a *App) newLimiter(ctx context.Context) *spend.Limiter {
	limits := map[string]spend.Limit{}
	for _, l := range a.cfg.Auth.Limits {
		limits[l.Key] = spend.Limit{MicroUSD: int64(math.Round(l.USDPerDay * 1e6)), Tokens: int64(l.TokensPerDay)}
		a.warnUnpriced(ctx, l)
	}
	return spend.New(a.repos.modelCalls, limits, time.Now)
}

// warnUnpriced tells an operator who limits dollars without prices.
func (a *App) warnUnpriced(ctx context.Context, l config.SpendLimit) {
	m, err := a.models.Get("")
	if l.USDPerDay > 0 && err == nil && m.Info().Cost(&core.Usage{}) == nil {
		a.log.WarnContext(ctx, "usd_per_day does not see calls of models without prices; write input_price and output_price in models, or limit tokens_per_day",
			"key", l.Key, "model", m.Info().Name)
	}
}

// newTitler returns what gives sessions titles, nil if that is switched off.
func (a *App) newTitler(profiles *agents.Profiles) *titles.Titler {
	if !a.cfg.Titles {
		return nil
	}
	return titles.New(titles.Options{
		Sessions: a.repos.sessions, Messages: a.repos.messages, Profiles: profiles, Models: a.models,
		Counter: a.counter, Budget: a.budget, Feed: a.feed, Logger: a.log,
	})
}

// answered is who is told of runs that ended with an answer.
func (a *App) answered() func(core.Run) {
	if a.titles == nil {
		return nil
	}
	return a.titles.Answered
}

// runTitles makes titles until ctx ends.
func (a *App) runTitles(ctx context.Context) error {
	if a.titles == nil {
		return nil
	}
	return a.titles.Run(ctx)
}
