package e2e_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/jwttest"
)

// withTokens lets the end users of "shop" in, by tokens whose keys the server has.
func withTokens(keys *jwttest.Server) apptest.Setting {
	return func(c *config.Config) {
		c.Auth.Required = true
		c.Auth.Keys = []config.APIKey{{Name: "shop", Secret: config.NewSecret("configured-secret")}}
		j := &c.Auth.JWT
		j.JWKSURL, j.Issuer, j.Audience, j.Owner, j.Leeway = keys.URL, jwttest.Issuer, jwttest.Audience, "shop", 0
	}
}

// Bobbin doctor fetches the keys, and says which can be used, or what is wrong.
func TestDoctorOfTokens(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k-2026", "ES256")
	keys := jwttest.Serve(t, s)
	cfg := config.Default()
	cfg.DataDir, cfg.DefaultLLM = t.TempDir(), "demo"
	cfg.Database.URL = config.NewSecretURL("sqlite://" + cfg.DataDir + "/b.db")
	withTokens(keys)(&cfg)
	for _, tt := range []struct {
		jwks   string
		status ops.Verdict
		detail string
	}{
		{string(jwttest.JWKS(t, s)), ops.VerdictOK, `1 keys: "k-2026" (ES256)`},
		{`{"keys":[]}`, ops.VerdictFail, "auth.jwt.jwks_url: it has no usable key: it is empty"},
		{strings.Replace(string(jwttest.JWKS(t, s)), "[", `[{"kty":"oct","k":"aHVzaA"},`, 1), ops.VerdictWarn, "of the keys 1 cannot be used: key 1: it is a shared secret; only public keys are accepted"},
	} {
		keys.Set([]byte(tt.jwks))
		found := ops.Doctor(t.Context(), ops.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings
		if !slices.ContainsFunc(found, func(f ops.Finding) bool {
			return f.Check == "tokens of end users" && f.Status == tt.status && f.Detail == tt.detail
		}) {
			t.Errorf("got %+v, want %s: %s", found, tt.status, tt.detail)
		}
	}
}
