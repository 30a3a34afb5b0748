package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
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
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
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
	compare.True(t, errors.As(err, &told) && told.Status == status && told.Code == code, "got %v, want %d %s", err, status, code)
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
			compare.Equal(t, "session with another key of the owner", id, session(t, c, id).ID)
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

// TestSecretsStayAway: no log line, event, error or file has a secret that was used: of
// The database's keys, the configuration's, a wrong one, and the provider's.
func TestSecretsStayAway(t *testing.T) {
	signer := jwttest.NewSigner(t, "k", "EdDSA")
	signerKeys := jwttest.Serve(t, signer)
	t.Setenv("HOUSE_KEY", "sk-provider-secret-0123456789")
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 500, p), withTokens(signerKeys), func(c *config.Config) {
			c.Models[0].APIKeyEnv, c.Log.Level = "HOUSE_KEY", "debug"
			c.Auth.Keys, c.Auth.JWT.Owner = []config.APIKey{{Name: "web", Secret: config.NewSecret("configured-secret-456")}}, "web"
		})
		_, secret := createKey(h, ops.NewKey{Name: "web"})
		var tokens []string
		secrets := []string{"configured-secret-456", secret, "bob_wrong-secret-789", "sk-provider-secret-0123456789"}
		for _, claims := range []map[string]any{nil, {"exp": time.Now().Add(-time.Hour).Unix()}, {"aud": "another"}} { // good, late, of no use
			token := signer.Token(t, jwttest.Claims("kim", claims), nil)
			parts := strings.Split(token, ".")
			secrets = append(secrets, token, parts[1], parts[2])
			tokens = append(tokens, token)
		}
		secrets = append(secrets, tokens[0]+"x") // a wrong signature
		var said strings.Builder
		id := apptest.NewSession(t, h.NewClient(secret), operations.NewSession{})
		for _, s := range secrets {
			answered := func(err error) { fmt.Fprintln(&said, err) }
			c := h.NewClient(s)
			_, err := client.Call(t.Context(), c, operations.GetSession, operations.InSession{SessionID: id})
			answered(err)
			_, err = client.Call(t.Context(), c, operations.GetSession, operations.InSession{SessionID: core.NewID[core.SessionID]()})
			answered(err)
		}
		c := h.NewClient(secret)
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "hello"})
		for e, err := range c.WatchSession(t.Context(), id, core.Cursor{}) {
			must.Do(t, err)
			fmt.Fprintln(&said, dataText(t, e))
			if e.Type == core.EventRunSucceeded {
				break
			}
		}
		kim := h.NewClient(tokens[0])
		apptest.SendMessage(t, kim, core.SendMessage{SessionID: apptest.NewSession(t, kim, operations.NewSession{}), Content: "hello"})
		operateOn(h, func(s *ops.Service) error {
			page, err := s.Audit.List(t.Context(), core.PageQuery{})
			fmt.Fprintf(&said, "%+v\n", page)
			return err
		})
		h.Stop()
		for where, text := range map[string]string{"answers and events": said.String(), "the log": h.Log.String(), "the database": everythingStored(t, h, url)} {
			compare.Lacks(t, where, text, secrets...)
		}
		if !strings.Contains(everythingStored(t, h, url), core.SecretHash(secret)) || !strings.Contains(h.Log.String(), "level=DEBUG") {
			t.Error("the hash of the key is not in the database, or the log has no details: are they read at all?")
		}
	})
}

// everythingStored returns everything that is in the data folder and, where it is another place,
// in the tables of the database that a secret could be in.
func everythingStored(t testing.TB, h *apptest.Bobbin, url string) string {
	t.Helper()
	var all strings.Builder
	dir := h.Config.DataDir
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		dir = filepath.Dir(path)
	} else {
		dump(t, url, &all)
	}
	for _, root := range []string{dir, h.Config.DataDir} {
		err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			all.Write(data)
			return err
		})
		must.Do(t, err)
	}
	return all.String()
}

// dump writes every row of every table of a PostgreSQL.
func dump(t testing.TB, url string, to io.Writer) {
	t.Helper()
	d := dbtest.Open(t, url)
	var tables []string
	must.Do(t, d.Gorm.Raw("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").Scan(&tables).Error)
	for _, table := range tables {
		var rows []string
		must.Do(t, d.Gorm.Raw("SELECT CAST(t AS text) FROM "+table+" t").Scan(&rows).Error)
		fmt.Fprintln(to, rows)
	}
}
