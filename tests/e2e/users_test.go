package e2e_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app"
	"bobbin/app/api"
	"bobbin/app/api/handlers"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/provider"
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
		_, err := kim.CreateSession(t.Context(), core.Session{})
		wantRefused(t, err, http.StatusServiceUnavailable, "unavailable")
		if status := readiness(h); status != http.StatusOK {
			t.Errorf("got readiness %d while the signer is down, want 200", status)
		}

		keys.Set(jwttest.JWKS(t, first))
		id := apptest.NewSession(t, kim, core.Session{})
		run := apptest.SendMessage(t, kim, core.SendMessage{SessionID: id, Content: "hello"}).Run
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
		session(t, h.NewClient(second.User(t, "kim")), id)
		keys.Do(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		session(t, kim, id)
		late := first.Token(t, jwttest.Claims("kim", map[string]any{"exp": time.Now().Add(-time.Second).Unix()}), nil)
		_, err = h.NewClient(late).Session(t.Context(), id)
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

// The largest body that the dialect of OpenAI takes is in the share of one end user.
func TestUsersLargestBody(t *testing.T) {
	t.Parallel()
	s := jwttest.NewSigner(t, "k", "EdDSA")
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), withTokens(jwttest.Serve(t, s)))
	body := `{"model":"assistant","messages":[{"role":"user","content":"hello"}]}`
	body += strings.Repeat(" ", api.OpenAIFactor*int(config.Default().Limits.BodyBytes)-len(body))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Authorization": {"Bearer " + s.User(t, "kim")}, "Content-Type": {"application/json"}}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("got %d %s (%v) for %d bytes, want 200", answer.StatusCode, text, err, len(body))
	}
}

// A feed ends with the token of its reader, who comes back with a new one and misses
// nothing.
func TestFeedEndsWithTheToken(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := apptest.New(t, url, withTokens(jwttest.Serve(t, s)))
		kim := h.NewClient(s.User(t, "kim"))
		id := apptest.NewSession(t, kim, core.Session{})
		apptest.SendMessage(t, kim, core.SendMessage{SessionID: id, Content: "hello"})
		var seen []int64
		var end error
		for len(seen) == 0 && t.Context().Err() == nil { // a token may be late already where everything is slow
			short := h.NewClient(s.Token(t, jwttest.Claims("kim", map[string]any{"exp": time.Now().Add(2 * time.Second).Unix()}), nil))
			for e, err := range short.WatchSession(t.Context(), id, core.Cursor{}) {
				if end = err; err == nil && e.Seq > 0 {
					seen = append(seen, e.Seq)
				}
			}
		}
		wantRefused(t, end, http.StatusUnauthorized, "token_expired")
		apptest.SendMessage(t, kim, core.SendMessage{SessionID: id, Content: "and again"})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		last := seen[len(seen)-1]
		for e, err := range kim.WatchSession(ctx, id, core.Cursor{After: last}) {
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
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := apptest.NewAsking(t, url, withTokens(jwttest.Serve(t, s)))
		kim, eve := *h, h.NewClient(s.User(t, "eve"))
		kim.Client = h.NewClient(s.User(t, "kim"))
		run := asks(t, &kim, "calculator")
		id := run.Approvals[0].ID
		_, err := eve.Decide(t.Context(), run.ID, id, core.ApprovalDecision{Approve: true})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		own, err := eve.SendAndWait(t.Context(), core.SendMessage{SessionID: apptest.NewSession(t, eve, core.Session{Agent: "careful"}), Content: "hello"})
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
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		gate := make(chan struct{})
		defer close(gate)
		p := apptest.NewProvider(t, provider.Options{Hold: func(string) { <-gate }})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 500, p), withTokens(jwttest.Serve(t, s)), func(c *config.Config) { c.Limits.RunsPerUser = 2 })
		kim, eve := h.NewClient(s.User(t, "kim")), h.NewClient(s.User(t, "eve"))
		send := func(c *client.Client) error {
			_, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: apptest.NewSession(t, c, core.Session{}), Content: "hello"})
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
	refused("no usable key")
	write(jwttest.JWKS(t, s))
	h := apptest.New(t, "sqlite://"+t.TempDir()+"/b.db", settings)
	apptest.NewSession(t, h.NewClient(s.User(t, "kim")), core.Session{})
	if _, err := h.NewClient(jwttest.NewSigner(t, "k", "ES256").User(t, "kim")).Sessions(t.Context(), core.SessionQuery{}); !errors.As(err, new(*client.ProblemError)) {
		t.Errorf("got %v for a token of somebody else, want it refused", err)
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
