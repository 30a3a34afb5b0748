package auth_test

import (
	"log/slog"
	"testing"

	"bobbin/app/api/auth"
	"bobbin/app/core"
)

// Without any key, a program on this machine may send whatever its SDK insists on. As soon as
// there is a key, and for all others, a wrong secret is refused.
func TestAnySecretWithoutKeys(t *testing.T) {
	t.Parallel()
	local := core.Identity{Owner: core.LocalOwner, Rights: core.Everything}
	none := core.Identity{}
	empty := &shelf{keys: map[string]core.APIKey{}}
	sdk := header("Authorization", "Bearer none")
	for _, tt := range []struct {
		name    string
		options auth.Options
		ask     ask
		want    core.Identity
		wantErr error
	}{
		{"no keys", auth.Options{}, ask{headers: sdk}, local, nil},
		{"no keys, by X-API-Key", auth.Options{}, ask{headers: header("X-API-Key", "none")}, local, nil},
		{"no keys, an empty bearer", auth.Options{}, ask{headers: header("Authorization", "Bearer ")}, local, nil},
		{"an empty store, an empty bearer", auth.Options{Stored: storedIn(empty)}, ask{headers: header("Authorization", "Bearer ")}, local, nil},
		{"an empty store", auth.Options{Stored: storedIn(empty)}, ask{headers: sdk}, local, nil},
		{"a revoked key", auth.Options{Stored: storedIn(newShelf(core.NewSecret()))}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"a configured key", auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"keys are required", auth.Options{Required: true}, ask{headers: sdk}, none, core.ErrUnauthorized},
		{"from afar", auth.Options{}, ask{remote: "203.0.113.9:4711", headers: sdk}, none, core.ErrUnauthorized},
		{"a foreign host", auth.Options{}, ask{host: "evil.example", headers: sdk}, none, core.ErrForbidden},
		{"through a proxy", auth.Options{}, ask{headers: map[string]string{"Authorization": "Bearer none", "X-Forwarded-For": "1.2.3.4"}}, none, core.ErrForbidden},
		{"a page of another origin", auth.Options{}, ask{headers: map[string]string{"Authorization": "Bearer none", "Origin": "https://evil.example"}}, none, core.ErrForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, auth.New(tt.options), tt.ask, tt.want, tt.wantErr)
		})
	}
}

func storedIn(s *shelf) *auth.Stored { return auth.NewStored(s, slog.New(slog.DiscardHandler)) }

// The first key counts with the next request: an empty secret is no owner from then on.
func TestFirstKey(t *testing.T) {
	t.Parallel()
	s := &shelf{keys: map[string]core.APIKey{}}
	a := auth.New(auth.Options{Stored: storedIn(s)})
	for _, secret := range []string{"Bearer ", "Bearer none"} {
		check(t, a, ask{headers: header("Authorization", secret)}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
	}
	s.set(core.NewSecret(), func(*core.APIKey) {})
	for _, secret := range []string{"Bearer ", "Bearer none"} {
		check(t, a, ask{headers: header("Authorization", secret)}, core.Identity{}, core.ErrUnauthorized)
	}
}
