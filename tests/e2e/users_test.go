package e2e_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app"
	"bobbin/app/api/auth/jwt/jwttest"
	"bobbin/app/api/handlers"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db/dbtest"
	"bobbin/tests/provider"
)

// withTokens lets the end users of "shop" in, by tokens whose keys the server has.
func withTokens(keys *jwttest.Server) setting {
	return func(c *config.Config) {
		c.Auth.Required = true
		c.Auth.Keys = []config.APIKey{{Name: "shop", Secret: config.NewSecret("configured-secret")}}
		j := &c.Auth.JWT
		j.JWKSURL, j.Issuer, j.Audience, j.Owner, j.Leeway = keys.URL, jwttest.Issuer, jwttest.Audience, "shop", 0
	}
}

// A web chat's users come with tokens of their backend: each has their own sessions, the
// backend's key has all. A new signing key counts at once, without a restart, and a
// signer that is down keeps nobody out whose key is known (issue 5, 4).
func TestUsersOfAWebChat(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		first, second := jwttest.NewSigner(t, "2026-a", "RS256"), jwttest.NewSigner(t, "2026-b", "ES256")
		keys := jwttest.Serve(t, first)
		keys.Do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		h := newHouse(t, url, withTokens(keys))
		kim, eve, shop := h.client(first.User(t, "kim")), h.client(first.User(t, "eve")), h.client("configured-secret")
		_, err := kim.CreateSession(t.Context(), core.Session{})
		wantRefused(t, err, http.StatusServiceUnavailable, "unavailable")
		if status := h.readiness(); status != http.StatusOK {
			t.Errorf("got readiness %d while the signer is down, want 200", status)
		}

		keys.Set(jwttest.JWKS(t, first))
		id := newSession(t, kim, core.Session{})
		run := say(t, kim, core.SendMessage{SessionID: id, Content: "hello"}).run
		if got := session(t, shop, id); got.UserID != "kim" {
			t.Errorf("got user %q of kim's session, want kim", got.UserID)
		}
		_, err = eve.Session(t.Context(), id)
		wantRefused(t, err, http.StatusNotFound, "not_found")
		_, err = eve.Run(t.Context(), run.ID)
		wantRefused(t, err, http.StatusNotFound, "not_found")
		for who, c := range map[string]*client.Client{"kim": kim, "shop": shop} {
			if page, err := c.Sessions(t.Context(), core.SessionQuery{}); err != nil || len(page.Items) != 1 {
				t.Errorf("%s: got %d sessions, %v, want one", who, len(page.Items), err)
			}
		}
		if page, err := eve.Sessions(t.Context(), core.SessionQuery{}); err != nil || len(page.Items) != 0 {
			t.Errorf("eve: got %d sessions, %v, want none", len(page.Items), err)
		}

		keys.Set(jwttest.JWKS(t, first, second))
		session(t, h.client(second.User(t, "kim")), id)
		keys.Do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		session(t, kim, id)
		late := first.Token(t, jwttest.Claims("kim", map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), nil)
		_, err = h.client(late).Session(t.Context(), id)
		wantRefused(t, err, http.StatusUnauthorized, "token_expired")
	})
}

// readiness returns the status of /readyz.
func (h *house) readiness() int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodGet, h.url+"/readyz", nil)
	if err != nil {
		h.t.Fatal(err)
	}
	answer, err := h.http.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		h.t.Error(err)
	}
	return answer.StatusCode
}

// A feed ends with the token of its reader, who comes back with a new one and misses
// nothing.
func TestFeedEndsWithTheToken(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := newHouse(t, url, withTokens(jwttest.Serve(t, s)))
		kim := h.client(s.User(t, "kim"))
		id := newSession(t, kim, core.Session{})
		say(t, kim, core.SendMessage{SessionID: id, Content: "hello"})
		var seen []int64
		var end error
		for len(seen) == 0 && t.Context().Err() == nil { // a token may be late already where everything is slow
			short := h.client(s.Token(t, jwttest.Claims("kim", map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()}), nil))
			for e, err := range short.WatchSession(t.Context(), id, core.From{}) {
				if end = err; err == nil && e.Seq > 0 {
					seen = append(seen, e.Seq)
				}
			}
		}
		wantRefused(t, end, http.StatusUnauthorized, "token_expired")
		say(t, kim, core.SendMessage{SessionID: id, Content: "and again"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		last := seen[len(seen)-1]
		for e, err := range kim.WatchSession(ctx, id, core.From{After: last}) {
			if err != nil || e.Seq > 0 && e.Seq != last+1 {
				t.Fatalf("got event %d after %d, %v, want the next one", e.Seq, last, err)
			}
			if last = max(last, e.Seq); e.Type == core.EventRunSucceeded {
				break
			}
		}
	})
}

// Whether a tool may start is for the user whose run asks, and for the owner.
func TestUsersDecide(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := newAsking(t, url, withTokens(jwttest.Serve(t, s)))
		kim, eve := *h, h.client(s.User(t, "eve"))
		kim.Client = h.client(s.User(t, "kim"))
		run := asks(t, &kim, "calculator")
		id := run.Approvals[0].ID
		_, err := eve.Decide(t.Context(), run.ID, id, core.ApprovalDecision{Approve: true})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		own, err := eve.SendAndWait(t.Context(), core.SendMessage{SessionID: newSession(t, eve, core.Session{Agent: "careful"}), Content: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = eve.Decide(t.Context(), own.Run.ID, id, core.ApprovalDecision{Approve: true})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		decided, err := kim.Decide(t.Context(), run.ID, id, core.ApprovalDecision{Approve: true})
		if err != nil || decided.DecidedBy != "kim" {
			t.Errorf("got %+v, %v, want it decided by kim", decided, err)
		}
		if run, _ := ended(t, &kim, run.ID); run.Status != core.RunSucceeded {
			t.Errorf("got the run %s, want it succeeded", run.Status)
		}
	})
}

// One user's runs have a limit of their own, and hold up nobody else of the owner.
func TestUsersRuns(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		gate := make(chan struct{})
		defer close(gate)
		p := newProvider(t, provider.Options{Hold: func(string) { <-gate }})
		h := newHouse(t, url, withModel("house", 8192, 500, p), withTokens(jwttest.Serve(t, s)), func(c *config.Config) { c.Limits.RunsPerUser = 2 })
		kim, eve := h.client(s.User(t, "kim")), h.client(s.User(t, "eve"))
		send := func(c *client.Client) error {
			_, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: newSession(t, c, core.Session{}), Content: "hello"})
			return err
		}
		for range 2 {
			if err := send(kim); err != nil {
				t.Error(err)
			}
		}
		wantRefused(t, send(kim), http.StatusTooManyRequests, "too_many_runs")
		if err := send(eve); err != nil {
			t.Errorf("another user: got %v, want it accepted", err)
		}
	})
}

// A file of keys is read at the start, which fails in words that say what to do.
func TestTokenKeysOfAFile(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "ES256")
	path := t.TempDir() + "/jwks.json"
	settings := func(c *config.Config) {
		withTokens(jwttest.Serve(t, s))(c)
		c.Auth.JWT.JWKSURL, c.Auth.JWT.JWKSFile = "", path
	}
	refused := func(words string) {
		t.Helper()
		cfg := config.Default()
		cfg.DataDir = t.TempDir()
		settings(&cfg)
		if _, err := app.New(t.Context(), cfg, handlers.Build{}, slog.New(slog.DiscardHandler)); !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want no start, and why: %s", err, words)
		}
	}
	write := func(jwks []byte) {
		t.Helper()
		if err := os.WriteFile(path, jwks, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused("auth.jwt.jwks_file: " + path)
	write([]byte(`{"keys":[]}`))
	refused("no key that can be used")
	write(jwttest.JWKS(t, s))
	h := newHouse(t, "sqlite://"+t.TempDir()+"/b.db", settings)
	newSession(t, h.client(s.User(t, "kim")), core.Session{})
	if _, err := h.client(jwttest.NewSigner(t, "k", "ES256").User(t, "kim")).Sessions(t.Context(), core.SessionQuery{}); !errors.As(err, new(*client.ProblemError)) {
		t.Errorf("got %v for a token of somebody else, want it refused", err)
	}
}

// bobbin doctor fetches the keys, and says which can be used, or what is wrong.
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
		status app.Verdict
		detail string
	}{
		{string(jwttest.JWKS(t, s)), app.VerdictOK, `1 keys: "k-2026" (ES256)`},
		{`{"keys":[]}`, app.VerdictFail, "auth.jwt.jwks_url: it has no key that can be used: it is empty"},
		{strings.Replace(string(jwttest.JWKS(t, s)), "[", `[{"kty":"oct","k":"aHVzaA"},`, 1), app.VerdictWarn, "of the keys 1 cannot be used: key 1: it is a shared secret; only public keys are taken"},
	} {
		keys.Set([]byte(tt.jwks))
		found := app.Doctor(t.Context(), app.DoctorOptions{Config: cfg, Logger: slog.New(slog.DiscardHandler)}).Findings
		if !slices.ContainsFunc(found, func(f app.Finding) bool {
			return f.Check == "tokens of end users" && f.Status == tt.status && f.Detail == tt.detail
		}) {
			t.Errorf("got %+v, want %s: %s", found, tt.status, tt.detail)
		}
	}
}
