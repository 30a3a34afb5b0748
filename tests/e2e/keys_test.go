package e2e_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

// operate does what an operator's command does beside the running server.
func operateOn(h *apptest.Bobbin, do func(*ops.Service) error) {
	h.T.Helper()
	must.Do(h.T, ops.Admin(h.T.Context(), h.Config, slog.New(slog.DiscardHandler), do))
}

// newKey makes a key in the database.
func createKey(h *apptest.Bobbin, in ops.NewKey) (key core.APIKey, secret string) {
	h.T.Helper()
	operateOn(h, func(s *ops.Service) (err error) {
		key, secret, err = s.CreateKey(h.T.Context(), in)
		return err
	})
	return key, secret
}

// wantRefused checks that an error is a problem of the status and code.
func wantRefused(t testing.TB, err error, status int, code string) {
	t.Helper()
	var told *client.ProblemError
	if !errors.As(err, &told) || told.Status != status || told.Code != code {
		t.Errorf("got %v, want %d %s", err, status, code)
	}
}

// openFeed follows the events of the session, and sends how that ended.
func openFeed(ctx context.Context, h *apptest.Bobbin, c *client.Client, id core.SessionID) <-chan error {
	h.T.Helper()
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var last error
		for e, err := range c.WatchSession(ctx, id, core.Cursor{}) {
			if last = err; e.Seq == 1 {
				close(begun)
			}
		}
		ended <- last
	}()
	select {
	case <-begun:
	case <-ctx.Done():
		h.T.Fatal("the feed does not begin")
	}
	return ended
}

// A key of the database counts on the running server at once, for its owner and its
// scopes, also beside configured ones; a revoked one is refused within seconds, without
// a restart.
func TestStoredKeys(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, func(c *config.Config) {
			c.Auth.Required, c.Limits.RequestsPerSecond = true, 0
			c.Auth.Keys = []config.APIKey{{Name: "shop", Secret: config.NewSecret("configured-secret")}}
		})
		_, err := client.Call(t.Context(), h.NewClient("bob_none"), operations.CreateSession, operations.NewSession{})
		wantRefused(t, err, http.StatusUnauthorized, "unauthorized")

		full, secret := createKey(h, ops.NewKey{Name: "web", Owner: "shop"})
		_, reading := createKey(h, ops.NewKey{Name: "report", Owner: "shop", Rights: core.CanRead})
		_, other := createKey(h, ops.NewKey{Name: "other"})
		web, report := h.NewClient(secret), h.NewClient(reading)
		id := apptest.NewSession(t, web, operations.NewSession{})
		apptest.SendMessage(t, web, core.SendMessage{SessionID: id, Content: "hello"})
		for _, c := range []*client.Client{report, h.NewClient("configured-secret")} {
			if got := session(t, c, id); got.ID != id {
				t.Errorf("got session %v with another key of the owner, want it", got.ID)
			}
		}
		_, err = client.Call(t.Context(), h.NewClient(other), operations.GetSession, operations.InSession{SessionID: id})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		_, err = client.Call(t.Context(), report, operations.CreateSession, operations.NewSession{})
		wantRefused(t, err, http.StatusForbidden, "missing_scope")

		ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
		defer cancel()
		ended, goesOn := openFeed(ctx, h, web, id), openFeed(ctx, h, report, id)
		operateOn(h, func(s *ops.Service) error {
			_, err := s.RevokeKey(t.Context(), string(full.ID), "cli:test")
			return err
		})
		wantRefused(t, <-ended, http.StatusUnauthorized, "unauthorized") // a feed that is open as well
		if len(goesOn) > 0 {
			t.Errorf("the feed of another key ended with %v, want it to go on", <-goesOn)
		}
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for err = nil; err == nil; <-again.C {
			_, err = client.Call(ctx, web, operations.GetSession, operations.InSession{SessionID: id})
		}
		wantRefused(t, err, http.StatusUnauthorized, "unauthorized")
		h.Restart()
		operateOn(h, func(s *ops.Service) error {
			keys, err := s.Keys.List(t.Context())
			if err != nil || len(keys) != 3 || keys[0].LastUsedAt == nil || keys[1].LastUsedAt == nil {
				t.Errorf("got keys %+v, %v, want when they were used", keys, err)
			}
			return err
		})
	})
}

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
