package app

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bobbin/app/admin"
	"bobbin/app/api/auth"
	"bobbin/app/api/auth/jwt"
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
	o := auth.Options{Keys: keys, Stored: a.apiKeys, Required: a.cfg.Auth.Required, LocalToken: a.token, GuessesPerMinute: a.cfg.Limits.GuessesPerMinute, Proxies: a.cfg.Server.Proxies()}
	if a.tokenKeys != nil {
		o.Tokens = jwt.New(a.tokenKeys, tokenOptions(a.cfg.Auth.JWT))
	}
	return auth.New(o)
}

// openTokenKeys prepares the keys of end users' tokens. Those of a file must be good:
// it is a setting. A server may be down, and nobody waits for it.
func (a *App) openTokenKeys(ctx context.Context) error {
	j := a.cfg.Auth.JWT
	if !j.Enabled() {
		return nil
	}
	a.tokenKeys = newTokenKeys(j, a.log)
	if j.JWKSFile == "" {
		return nil
	}
	if err := a.tokenKeys.Load(ctx); err != nil {
		return core.Errorf(core.ErrInvalid, "auth.jwt.jwks_file: %s: %v; write the public keys of who signs the tokens there, as a JWKS", j.JWKSFile, err)
	}
	return nil
}

func newTokenKeys(j config.JWT, log *slog.Logger) *jwt.Keys {
	return jwt.NewKeys(jwt.KeyOptions{URL: j.JWKSURL, File: j.JWKSFile, Refresh: j.Refresh, Logger: log})
}

func tokenOptions(j config.JWT) jwt.Options {
	return jwt.Options{
		Issuer: j.Issuer, Audience: j.Audience, Owner: j.Owner, OwnerClaim: j.OwnerClaim, UserClaim: j.UserClaim,
		Rights: j.Rights(), ScopeClaim: j.ScopeClaim, Leeway: j.Leeway, MaxLife: j.MaxLife,
	}
}

// keepTokenKeys keeps the keys of end users' tokens fresh until ctx ends.
func (a *App) keepTokenKeys(ctx context.Context) error {
	if a.tokenKeys == nil {
		return nil
	}
	return a.tokenKeys.Run(ctx)
}

// checkReach refuses an address that other machines reach while there is no key: nobody
// could call, and who set it expects that somebody can.
func (a *App) checkReach(ctx context.Context) error {
	if a.cfg.Loopback() || len(a.cfg.Auth.Keys) > 0 || a.cfg.Auth.JWT.Enabled() {
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
	return do(admin.New(repositories.NewAPIKeys(database.Gorm), repositories.NewAudit(database.Gorm), repositories.NewDeliveries(database.Gorm)))
}
