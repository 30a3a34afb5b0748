package repositories_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

func installation(team, tokens string) core.SlackInstallation {
	return core.SlackInstallation{
		Team: team, Name: "Acme", App: "A1", BotUser: "U1", Owner: "ann", Scopes: "chat:write", Tokens: []byte(tokens),
		State: core.SlackInstalled, CreatedAt: core.Now(), UpdatedAt: core.Now(),
	}
}

// An installation is found by its workspace as long as it is active. Tokens that were replaced
// meanwhile do not end it.
func TestSlackInstallationFind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewSlackInstallations(d.Gorm)
		own := installation("T1", "one")
		for _, i := range []core.SlackInstallation{installation("T1", "old"), own, installation("T0", "other")} {
			must.Do(t, r.Save(t.Context(), i))
		}
		must.Do(t, r.Revoke(t.Context(), installation("T1", "old")))
		if got, err := r.Find(t.Context(), "T1"); err != nil || cmp.Diff(own, got) != "" {
			t.Errorf("error %v, and the installation (-want +got):\n%s", err, cmp.Diff(own, got))
		}
		must.Do(t, r.Revoke(t.Context(), own))
		_, err := r.Find(t.Context(), "T1")
		wantNotFound(t, "the installation", err)
		all, err := r.List(t.Context())
		if err != nil || len(all) != 2 || all[1].State != core.SlackRevoked || all[1].Tokens != nil {
			t.Errorf("got %+v, %v, want that of T1 revoked, without tokens", all, err)
		}
	})
}
