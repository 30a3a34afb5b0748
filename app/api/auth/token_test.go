package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
)

// users are tokens and whom they speak for.
type users map[string]core.Identity

// The tokens of the tests.
const (
	good    = "eyJ.good.x"
	late    = "eyJ.late.x"
	keyless = "eyJ.keyless.x"
)

func (u users) Identify(_ context.Context, token string) (core.Identity, error) {
	switch who, ok := u[token]; {
	case token == late:
		return core.Identity{}, &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired, Message: "late"}
	case token == keyless:
		return core.Identity{}, core.Errorf(core.ErrUnavailable, "no keys")
	case ok:
		return who, nil
	}
	return core.Identity{}, core.Errorf(core.ErrUnauthorized, "no")
}

// A token of three parts is an end user's, unless it is an API key that looks so; what
// has another form is none, and without the setting there are none at all.
func TestTokens(t *testing.T) {
	t.Parallel()
	eve := core.Identity{Owner: "shop", User: "eve", Rights: core.ReadWrite, Expires: time.Unix(5, 0)}
	const odd = "eyJ.key.x"
	keys := []auth.Key{auth.NewKey("ann", odd, core.ReadWrite)}
	a := auth.New(auth.Options{Keys: keys, VerifyToken: users{good: eve, odd: eve}.Identify})
	bearer := func(s string) map[string]string { return header("Authorization", "Bearer "+s) }
	for _, remote := range []string{"127.0.0.1:1", "203.0.113.9:4711"} {
		check(t, a, ask{remote: remote, host: "bobbin.example", headers: bearer(good)}, eve, nil)
	}
	check(t, a, ask{headers: bearer(odd)}, core.Identity{Owner: "ann", Key: "ann", Rights: core.ReadWrite}, nil)
	for _, secret := range []string{"eyJ.bad.x", late, "x" + good, good + ".x", "eyJgoodx"} {
		check(t, a, ask{headers: bearer(secret)}, core.Identity{}, core.ErrUnauthorized)
	}
	check(t, a, ask{headers: bearer(keyless)}, core.Identity{}, core.ErrUnavailable)
	check(t, auth.New(auth.Options{Keys: keys}), ask{headers: bearer(good)}, core.Identity{}, core.ErrUnauthorized)
	check(t, auth.New(auth.Options{Required: true}), ask{headers: bearer(good)}, core.Identity{}, core.ErrUnauthorized)
}

// Behind a proxy all users have one address: a stranger's guesses do not keep them out,
// with whatever new token they come, nor do tokens that have expired count as guesses.
func TestTokensBehindAProxy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		eve := core.Identity{Owner: "shop", User: "eve"}
		a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, VerifyToken: users{good: eve}.Identify, GuessesPerMinute: 3})
		from := func(secret string) error {
			_, err := a.Authenticate(ask{remote: "203.0.113.9:1", headers: header("Authorization", "Bearer "+secret)}.request())
			return err
		}
		for range 10 {
			if err := from(late); !errors.Is(err, core.ErrUnauthorized) {
				t.Fatalf("got %v for a token that has expired, want that", err)
			}
		}
		for i := range 5 {
			want := core.ErrUnauthorized
			if i >= 3 {
				want = core.ErrRateLimited
			}
			compare.Error(t, fmt.Sprintf("guess %d", i), want, from("eyJ.bad.x"))
		}
		compare.Error(t, "for a wrong key after guesses by tokens: want it held up", core.ErrRateLimited, from("wrong"))
		compare.Error(t, "for a good token after guesses: want it let in", nil, from(good))
		compare.Error(t, "for a late token after guesses: want that it is late", core.ErrUnauthorized, from(late))
	})
}

// A request with several keys is refused: a proxy may have looked at another one.
func TestSeveralKeys(t *testing.T) {
	t.Parallel()
	a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite), auth.NewKey("bob", "other", core.ReadWrite)}})
	for _, headers := range []http.Header{
		{"Authorization": {"Bearer s3cret", "Bearer other"}},
		{"Authorization": {"Bearer s3cret"}, "X-Api-Key": {"other"}},
		{"X-Api-Key": {"s3cret", "other"}},
		{"Authorization": {"", "Bearer other"}},
	} {
		r := ask{}.request()
		r.Header = headers
		if who, err := a.Authenticate(r); !errors.Is(err, core.ErrUnauthorized) {
			t.Errorf("%v: got %+v, %v, want it refused", headers, who, err)
		}
	}
}
