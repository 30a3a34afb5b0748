package auth_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/core"
)

// An address with too many requests without a good key is held up, also with the right
// one, unless that was let in before; others are not, and it passes (issue 5, 4).
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
			if err := from(remote, "s3cret"); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := from(remote, "guess"); !errors.Is(err, core.ErrUnauthorized) {
					t.Fatalf("got %v for a guess, want that it is wrong", err)
				}
			}
		}
		var held *core.Error
		for _, remote := range []string{eve, "203.0.113.9:2", home, neighbor} {
			for _, secret := range []string{"guess", "other", ""} {
				err := from(remote, secret)
				if !errors.As(err, &held) || held.Code != auth.CodeGuesses || held.RetryAfter <= 0 {
					t.Errorf("%s with %q: got %v, want to be held up", remote, secret, err)
				}
			}
			if err := from(remote, "s3cret"); err != nil {
				t.Errorf("%s with a key that was let in before: got %v, want it let in", remote, err)
			}
		}
		for _, remote := range []string{"203.0.113.10:1", "[2001:db8:0:1::1]:1"} {
			if err := from(remote, "other"); err != nil {
				t.Errorf("%s: got %v, want it let in", remote, err)
			}
		}
		check(t, a, ask{}, core.Identity{Owner: core.LocalOwner, Rights: core.Everything}, nil)
		time.Sleep(held.RetryAfter)
		if err := from(eve, "other"); err != nil {
			t.Errorf("after the time that was told: got %v, want it let in", err)
		}
	})
}
