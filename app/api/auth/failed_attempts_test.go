package auth_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
)

// An address with too many requests without a good key is held up until its time has
// passed. A good key is let in from there all the same, also one that was never seen.
func TestGuesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		keys := []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite), auth.NewKey("bob", "other", core.ReadWrite)}
		a := auth.New(auth.Options{Keys: keys, GuessesPerMinute: 3})
		from := func(remote, secret string) error {
			_, err := a.Authenticate(ask{remote: remote, headers: header("X-API-Key", secret)}.request())
			return err
		}
		const eve, home, neighbor = "203.0.113.9:1", "[2001:db8::1]:1", "[2001:db8::ffff]:2"
		for _, remote := range []string{eve, home} {
			for range 3 {
				if err := from(remote, "guess"); !errors.Is(err, core.ErrUnauthorized) {
					t.Fatalf("got %v for a guess, want that it is wrong", err)
				}
			}
		}
		var held *core.Error
		for _, remote := range []string{eve, "203.0.113.9:2", home, neighbor} {
			for _, secret := range []string{"guess", ""} {
				err := from(remote, secret)
				if !errors.As(err, &held) || held.Code != auth.CodeFailedAttempts || held.RetryAfter <= 0 {
					t.Errorf("%s with %q: got %v, want to be held up", remote, secret, err)
				}
			}
			for _, secret := range []string{"s3cret", "other"} {
				compare.Error(t, fmt.Sprintf("%s with the good key %s: want it let in", remote, secret), nil, from(remote, secret))
			}
		}
		for _, remote := range []string{"203.0.113.10:1", "[2001:db8:0:1::1]:1"} {
			compare.Error(t, remote+": want only that it is wrong", core.ErrUnauthorized, from(remote, "guess"))
		}
		check(t, a, ask{}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
		time.Sleep(held.RetryAfter)
		compare.Error(t, "after the time that was told: want only that it is wrong", core.ErrUnauthorized, from(eve, "guess"))
	})
}

// Behind a trusted proxy those are held up who guess, by the address that the proxy saw;
// whoever writes addresses into the header themselves gains nothing, and behind no proxy
// the header is nothing.
func TestGuessesBehindAProxy(t *testing.T) {
	t.Parallel()
	const proxy = "10.0.0.7:1"
	for name, tt := range map[string]struct {
		remote         string
		guesser, other []string // X-Forwarded-For
		held           bool     // the other is held up, too
	}{
		"two visitors":              {proxy, []string{"203.0.113.9"}, []string{"203.0.113.10"}, false},
		"one visitor":               {proxy, []string{"203.0.113.9"}, []string{"203.0.113.9:4711"}, true},
		"one that writes addresses": {proxy, []string{"1.1.1.1, 203.0.113.9"}, []string{"2.2.2.2", "203.0.113.9"}, true},
		"behind two proxies":        {proxy, []string{"203.0.113.9, 10.1.1.1"}, []string{"203.0.113.10", "10.2.2.2"}, false},
		"one of a household":        {proxy, []string{"2001:db8::1"}, []string{"[2001:db8::2]:5"}, true},
		"no address":                {proxy, []string{"unknown"}, []string{"203.0.113.10, _hidden"}, true},
		"no header":                 {proxy, nil, []string{""}, true},
		"no proxy of ours":          {"192.0.2.1:1", []string{"203.0.113.9"}, []string{"203.0.113.10"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := auth.New(auth.Options{Keys: []auth.Key{auth.NewKey("ann", "s3cret", core.ReadWrite)}, GuessesPerMinute: 2, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
			from := func(secret string, forwarded []string) error {
				r := ask{remote: tt.remote, headers: header("X-API-Key", secret)}.request()
				for _, value := range forwarded {
					r.Header.Add("X-Forwarded-For", value)
				}
				_, err := a.Authenticate(r)
				return err
			}
			for range 2 {
				if err := from("guess", tt.guesser); !errors.Is(err, core.ErrUnauthorized) {
					t.Fatalf("got %v for a guess, want that it is wrong", err)
				}
			}
			compare.Error(t, "for who guessed: want them held up", core.ErrRateLimited, from("guess", tt.guesser))
			compare.Equal(t, "the other is held up", tt.held, errors.Is(from("guess", tt.other), core.ErrRateLimited))
			compare.Error(t, "for a good key: want it let in", nil, from("s3cret", tt.other))
		})
	}
}
