package e2e_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	"bobbin/tests/provider"
)

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
			for _, s := range secrets {
				if strings.Contains(text, s) {
					t.Errorf("%s: the secret %.12s… is in it", where, s)
				}
			}
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
