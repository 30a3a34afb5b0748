package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bobbin/app/admin"
	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
)

// buildAuth builds what says who makes a request.
func (a *App) buildAuth() *auth.Authenticator {
	var keys []auth.Key
	for _, k := range a.cfg.Auth.Keys {
		rights := core.ReadWrite
		if slices.Contains(a.cfg.Metrics.Keys, k.Name) {
			rights |= core.CanMetrics
		}
		if sum, ok := k.Sum(); ok {
			keys = append(keys, auth.HashedKey(k.Name, sum, rights))
		}
	}
	a.apiKeys = auth.NewStored(repositories.NewAPIKeys(a.database.Gorm), a.log)
	return auth.New(auth.Options{Keys: keys, Stored: a.apiKeys, Required: a.cfg.Auth.Required, LocalToken: a.token, GuessesPerMinute: a.cfg.Limits.GuessesPerMinute})
}

// checkReach refuses an address that other machines reach while there is no key: nobody
// could call, and who set it expects that somebody can.
func (a *App) checkReach(ctx context.Context) error {
	if a.cfg.Loopback() || len(a.cfg.Auth.Keys) > 0 {
		return nil
	}
	keys, err := repositories.NewAPIKeys(a.database.Gorm).List(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(keys, func(k core.APIKey) bool { return k.Valid(time.Now()) }) {
		return nil
	}
	return core.Errorf(core.ErrInvalid, "%s can be reached from other machines, and there are no API keys; make one with: bobbin keys create <name>, or listen on 127.0.0.1", a.cfg.Addr)
}

// Admin calls do with what looks after keys and the audit log. It works on the database
// itself, also beside a server that runs on it.
func Admin(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*admin.Service) error) (err error) {
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Migrate(ctx); err != nil {
		return err
	}
	return do(admin.New(repositories.NewAPIKeys(database.Gorm), repositories.NewAudit(database.Gorm)))
}
