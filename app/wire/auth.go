package wire

import (
	"log/slog"
	"slices"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/app/core/config"
)

// NewAuth builds what says who makes a request. TokenKeys are those of end users' tokens;
// nil = none are accepted. The local token admits this machine's own user.
func NewAuth(cfg config.Config, stored *auth.Stored, tokenKeys *auth.Keys, localToken string) *auth.Authenticator {
	var keys []auth.Key
	for _, k := range cfg.Auth.Keys {
		rights := core.ReadWrite
		if slices.Contains(cfg.Metrics.Keys, k.Name) {
			rights |= core.CanMetrics
		}
		if sum, ok := k.Sum(); ok {
			keys = append(keys, auth.HashedKey(k.Name, sum, rights))
		}
	}
	o := auth.Options{
		Keys: keys, Stored: stored, Required: cfg.Auth.Required, LocalToken: localToken,
		GuessesPerMinute: cfg.Limits.GuessesPerMinute, Proxies: cfg.Server.Proxies(),
	}
	if tokenKeys != nil {
		j := cfg.Auth.JWT
		o.VerifyToken = auth.NewVerifier(tokenKeys, auth.VerifierOptions{
			Issuer: j.Issuer, Audience: j.Audience, Owner: j.Owner, OwnerClaim: j.OwnerClaim, UserClaim: j.UserClaim,
			Rights: j.Rights(), ScopeClaim: j.ScopeClaim, Leeway: j.Leeway, MaxLife: j.MaxLife,
		}).Identify
	}
	return auth.New(o)
}

// NewTokenKeys returns the keys of end users' tokens, which are not fetched yet.
func NewTokenKeys(j config.JWT, log *slog.Logger) *auth.Keys {
	return auth.NewKeys(auth.KeyOptions{URL: j.JWKSURL, File: j.JWKSFile, Refresh: j.Refresh, Logger: log})
}
