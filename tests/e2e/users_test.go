package e2e_test

import (
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

// A web chat's users come with tokens of their backend: each has their own sessions, the
// backend's key has all. A new signing key counts at once, without a restart, and a
// signer that is down keeps nobody out whose key is known.
func TestUsersOfAWebChat(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		first, second := jwttest.NewSigner(t, "2026-a", "RS256"), jwttest.NewSigner(t, "2026-b", "ES256")
		keys := jwttest.Serve(t, first)
		keys.Do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		h := apptest.New(t, url, withTokens(keys))
		kim, eve, shop := h.NewClient(first.User(t, "kim")), h.NewClient(first.User(t, "eve")), h.NewClient("configured-secret")
		_, err := client.Call(t.Context(), kim, operations.CreateSession, operations.NewSession{})
		wantRefused(t, err, http.StatusServiceUnavailable, "unavailable")
		if status := readiness(h); status != http.StatusOK {
			t.Errorf("got readiness %d while the signer is down, want 200", status)
		}

		keys.Set(jwttest.JWKS(t, first))
		id := apptest.NewSession(t, kim, operations.NewSession{})
		run := apptest.SendMessage(t, kim, core.SendMessage{SessionID: id, Content: "hello"}).Run
		if got := session(t, shop, id); got.UserID != "kim" {
			t.Errorf("got user %q of kim's session, want kim", got.UserID)
		}
		_, err = client.Call(t.Context(), eve, operations.GetSession, operations.InSession{SessionID: id})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		_, err = client.Call(t.Context(), eve, operations.GetRun, operations.InRun{RunID: run.ID})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		for who, c := range map[string]*client.Client{"kim": kim, "shop": shop} {
			if page, err := client.Call(t.Context(), c, operations.ListSessions, core.SessionQuery{}); err != nil || len(page.Items) != 1 {
				t.Errorf("%s: got %d sessions, %v, want one", who, len(page.Items), err)
			}
		}
		if page, err := client.Call(t.Context(), eve, operations.ListSessions, core.SessionQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("eve: got %d sessions, %v, want none", len(page.Items), err)
		}

		keys.Set(jwttest.JWKS(t, first, second))
		session(t, h.NewClient(second.User(t, "kim")), id)
		keys.Do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		session(t, kim, id)
		late := first.Token(t, jwttest.Claims("kim", map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), nil)
		_, err = client.Call(t.Context(), h.NewClient(late), operations.GetSession, operations.InSession{SessionID: id})
		wantRefused(t, err, http.StatusUnauthorized, "token_expired")
	})
}

// readiness returns the status of /readyz.
func readiness(h *apptest.Bobbin) int {
	h.T.Helper()
	r, err := http.NewRequestWithContext(h.T.Context(), http.MethodGet, h.URL+"/readyz", nil)
	if err != nil {
		h.T.Fatal(err)
	}
	answer, err := h.HTTP.Do(r)
	if err != nil {
		h.T.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		h.T.Error(err)
	}
	return answer.StatusCode
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
