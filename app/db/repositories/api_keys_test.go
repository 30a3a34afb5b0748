package repositories_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/app/ops"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A key is created, found by its secret alone, used and revoked, and the audit log has an
// entry for each action of an operator, without a secret.
func TestAPIKeys(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys, audit := repositories.NewAPIKeys(s.Gorm), repositories.NewAudit(s.Gorm)
		service := &ops.Service{Keys: keys, Audit: audit}
		made, secret := must.Get2(service.CreateKey(t.Context(), ops.NewKey{Name: "web", Owner: "shop", Rights: core.CanRead | core.CanMetrics, Expires: time.Hour, Actor: "cli:ann"}))(t)
		got, err := keys.ByHash(t.Context(), core.SecretHash(secret))
		if diff := cmp.Diff(made, got); err != nil || diff != "" {
			t.Fatalf("the key of the secret: %v (-made +got)\n%s", err, diff)
		}
		wantError(t, "another secret", compare.ErrorOf(keys.ByHash(t.Context(), core.SecretHash(secret+"x"))), core.ErrNotFound)
		later := made.CreatedAt.Add(2 * time.Minute)
		for _, at := range []time.Time{later, made.CreatedAt} { // replicas tell in any order
			must.Do(t, keys.Used(t.Context(), map[core.KeyID]time.Time{made.ID: at}))
		}
		for range 2 { // revoked twice is revoked once
			if _, err := service.RevokeKey(t.Context(), "web", "cli:bob"); err != nil {
				wantError(t, "a name that no valid key has", err, core.ErrNotFound)
			}
			must.Get(service.RevokeKey(t.Context(), string(made.ID), "cli:bob"))(t)
		}
		list := must.Get(service.Keys.List(t.Context()))(t)
		compare.True(t, len(list) == 1 && list[0].RevokedAt != nil && list[0].LastUsedAt != nil && list[0].LastUsedAt.Equal(later), "got keys %+v, want the one, revoked, last used %v", list, later)
		var told []string
		for _, e := range all(t, func(cursor string) (core.Page[core.AuditEntry], error) {
			return service.Audit.List(t.Context(), core.PageQuery{Limit: 1, Cursor: cursor})
		}) {
			told = append(told, e.Actor+" "+e.Action+" "+e.Owner+" "+e.Target)
		}
		want := []string{"cli:bob key.revoked shop key " + string(made.ID), "cli:ann key.created shop key " + string(made.ID)}
		compare.Equal(t, "audit log", want, told)
	})
}

// Names say which key is meant only if one has it.
func TestAPIKeyNames(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		service := &ops.Service{Keys: repositories.NewAPIKeys(s.Gorm), Audit: repositories.NewAudit(s.Gorm)}
		var first core.APIKey
		for range 2 {
			key, _, err := service.CreateKey(t.Context(), ops.NewKey{Name: "web"})
			must.True(t, err == nil && key.Owner == "web" && key.Rights == core.ReadWrite, "got %+v, %v, want a key of web that reads and writes", key, err)
			if first.ID == "" {
				first = key
			}
		}
		wantError(t, "a name that two keys have", compare.ErrorOf(service.RevokeKey(t.Context(), "web", "")), core.ErrConflict)
		must.Get(service.RevokeKey(t.Context(), string(first.ID), ""))(t)
		got := must.Get(service.RevokeKey(t.Context(), "web", ""))(t)
		compare.True(t, got.ID != first.ID, "got %v, want the one that is valid revoked", got.ID)
		for _, in := range []ops.NewKey{{}, {Name: "a b"}, {Name: "a", Owner: "ö"}, {Name: "a", Expires: -1}} {
			_, _, err := service.CreateKey(t.Context(), in)
			wantError(t, "a key that cannot be", err, core.ErrInvalid)
		}
	})
}
