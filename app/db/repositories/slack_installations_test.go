package repositories_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
)

func installation(team, enterprise, tokens string) core.SlackInstallation {
	soon := core.Now().Add(time.Hour)
	return core.SlackInstallation{
		Team: team, Enterprise: enterprise, Name: "Acme", App: "A1", BotUser: "U1", Owner: "ann", Scopes: "chat:write", Tokens: []byte(tokens),
		State: core.SlackInstalled, ExpiresAt: &soon, CreatedAt: core.Now(), UpdatedAt: core.Now(),
	}
}

// An installation is found by its workspace, else by the organization, as long as it is active.
func TestSlackInstallationFind(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewSlackInstallations(d.Gorm)
		own, whole := installation("T1", "E1", "one"), installation("E1", "E1", "all")
		for _, i := range []core.SlackInstallation{installation("T1", "E1", "old"), own, whole} {
			if err := r.Save(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		find := func(enterprise, team, want string) {
			t.Helper()
			got, err := r.Find(t.Context(), enterprise, team)
			if want == "" {
				wantNotFound(t, "the installation", err)
			} else if err != nil || string(got.Tokens) != want {
				t.Errorf("of %s in %q: got %q, %v, want %q", team, enterprise, got.Tokens, err, want)
			}
		}
		find("E1", "T1", "one")
		find("", "T1", "one")
		find("E1", "T2", "all")
		find("", "T2", "")
		if got, err := r.Find(t.Context(), "", "T1"); err != nil || cmp.Diff(own, got) != "" {
			t.Errorf("error %v, and the installation (-want +got):\n%s", err, cmp.Diff(own, got))
		}
		if err := r.Revoke(t.Context(), installation("T1", "", "old")); err != nil {
			t.Fatal(err)
		}
		find("E1", "T1", "one") // it has other tokens by now
		if err := r.Revoke(t.Context(), own); err != nil {
			t.Fatal(err)
		}
		find("E1", "T1", "all")
		all, err := r.List(t.Context())
		if err != nil || len(all) != 2 || all[1].State != core.SlackRevoked || all[1].Tokens != nil || all[1].ExpiresAt != nil {
			t.Errorf("got %+v, %v, want that of T1 revoked, without tokens", all, err)
		}
	})
}

// One of several callers may rotate the tokens; afterwards nobody may with the old ones.
func TestSlackInstallationLease(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := repositories.NewSlackInstallations(d.Gorm)
		old, next := installation("T1", "", "old"), installation("T1", "", "new")
		if err := r.Save(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		var leases atomic.Int32
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if got, err := r.Lease(t.Context(), old, time.Minute); err != nil {
					t.Error(err)
				} else if got {
					leases.Add(1)
				}
			})
		}
		callers.Wait()
		if leases.Load() != 1 {
			t.Errorf("%d callers have the lease, want one", leases.Load())
		}
		if err := r.Rotate(t.Context(), old.Tokens, next); err != nil {
			t.Fatal(err)
		}
		if err := r.Rotate(t.Context(), old.Tokens, next); !errors.Is(err, core.ErrStale) {
			t.Errorf("a second rotation of the same tokens: got %v, want ErrStale", err)
		}
		if got, err := r.Lease(t.Context(), old, time.Minute); err != nil || got {
			t.Errorf("with the old tokens: got the lease %t, %v, want none", got, err)
		}
		if got, err := r.Lease(t.Context(), next, time.Minute); err != nil || !got {
			t.Errorf("with the new tokens: got the lease %t, %v, want it", got, err)
		}
	})
}
