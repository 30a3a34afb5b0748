package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/api/auth"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// shelf is keys in memory.
type shelf struct {
	core.APIKeyStore

	mu    sync.Mutex
	keys  map[string]core.APIKey // by hash
	used  map[core.KeyID]time.Time
	asked int
	fails error
}

func (s *shelf) ByHash(_ context.Context, hash string) (core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.fails != nil {
		return core.APIKey{}, s.fails
	}
	k, ok := s.keys[hash]
	if !ok {
		return k, core.Errorf(core.ErrNotFound, "no")
	}
	return k, nil
}

func (s *shelf) List(context.Context) ([]core.APIKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.keys)), s.fails
}

func (s *shelf) ByIDs(_ context.Context, ids []core.KeyID) (found []core.APIKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.keys {
		if slices.Contains(ids, k.ID) {
			found = append(found, k)
		}
	}
	return found, s.fails
}

func (s *shelf) Used(_ context.Context, at map[core.KeyID]time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, when := range at {
		s.used[id] = when
	}
	return s.fails
}

// usedAt returns when the key was used last, as far as that is stored.
func (s *shelf) usedAt(id core.KeyID) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[id]
}

func (s *shelf) set(secret string, change func(*core.APIKey)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[core.SecretHash(secret)]
	change(&k)
	s.keys[core.SecretHash(secret)] = k
}

func newShelf(secret string) *shelf {
	key := core.APIKey{ID: "k1", Name: "web", Owner: "shop", Rights: core.CanRead}
	return &shelf{keys: map[string]core.APIKey{core.SecretHash(secret): key}, used: map[core.KeyID]time.Time{}}
}

// A key of the database opens what its scopes say, as its owner; a revoked one is
// refused after auth.Remembered at the latest, an expired one at once.
func TestStoredKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret := core.NewSecret()
		s := newShelf(secret)
		a := auth.New(auth.Options{Stored: auth.NewStored(s, slog.New(slog.DiscardHandler)), Required: true})
		with := ask{remote: "203.0.113.9:4711", headers: header("X-API-Key", secret)}
		who := core.Identity{Owner: "shop", Key: "web", KeyID: "k1", Rights: core.CanRead}
		for range 5 {
			check(t, a, with, who, nil)
		}
		compare.Equal(t, "questions of the database for five requests", 1, s.asked)
		now := time.Now()
		s.set(secret, func(k *core.APIKey) { k.RevokedAt = &now })
		time.Sleep(auth.Remembered)
		check(t, a, with, core.Identity{}, core.ErrUnauthorized)
		soon := time.Now().Add(auth.Remembered + time.Second)
		s.set(secret, func(k *core.APIKey) { k.RevokedAt, k.ExpiresAt = nil, &soon })
		time.Sleep(auth.Remembered)
		check(t, a, with, who, nil) // remembered now
		time.Sleep(time.Second)
		check(t, a, with, core.Identity{}, core.ErrUnauthorized)
	})
}

// Keys of requests that are held for long are looked at again: revoked, expired and
// removed ones are told, with the reason that whoever comes anew is told.
func TestLapsed(t *testing.T) {
	t.Parallel()
	secrets := []string{core.NewSecret(), core.NewSecret(), core.NewSecret()}
	s, past := newShelf(secrets[0]), time.Now().Add(-time.Second)
	s.set(secrets[1], func(k *core.APIKey) { k.ID, k.RevokedAt = "k2", &past })
	s.set(secrets[2], func(k *core.APIKey) { k.ID, k.ExpiresAt = "k3", &past })
	a := auth.New(auth.Options{Stored: auth.NewStored(s, slog.New(slog.DiscardHandler))})
	got, err := a.Lapsed(t.Context(), []core.KeyID{"k1", "k2", "k3", "k4"})
	want := map[core.KeyID]string{"k2": "this API key was revoked", "k3": "this API key has expired", "k4": "unknown API key"}
	must.True(t, err == nil && len(got) == len(want), "got %v, %v, want %v", got, err, want)
	for id, text := range want {
		compare.True(t, errors.Is(got[id], core.ErrUnauthorized) && got[id].Error() == text, "got %v for %s, want %q", got[id], id, text)
	}
	s.fails = errors.New("no database")
	if got, err := a.Lapsed(t.Context(), []core.KeyID{"k1"}); len(got) > 0 || !errors.Is(err, s.fails) {
		t.Errorf("got %v, %v from a database that does not answer, want that, and no key refused", got, err)
	}
	if got, err := auth.New(auth.Options{}).Lapsed(t.Context(), nil); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v without keys of a database, want nothing", got, err)
	}
}

// What is no key of ours is not looked for, guesses are not kept, and a database that
// does not answer opens nothing.
func TestStoredGuesses(t *testing.T) {
	t.Parallel()
	s := newShelf(core.NewSecret())
	a := auth.New(auth.Options{Stored: auth.NewStored(s, slog.New(slog.DiscardHandler)), Required: true})
	check(t, a, ask{headers: header("X-API-Key", "sk-something-else")}, core.Identity{}, core.ErrUnauthorized)
	compare.Equal(t, "questions for what is no key of ours", 0, s.asked)
	for range 3 {
		check(t, a, ask{headers: header("X-API-Key", "bob_guess")}, core.Identity{}, core.ErrUnauthorized)
	}
	compare.Equal(t, "questions for three guesses: want a key that is made now must count now", 3, s.asked)
	s.fails = core.Errorf(core.ErrUnavailable, "the database is busy")
	_, err := a.Authenticate(ask{headers: header("X-API-Key", "bob_guess")}.request())
	compare.True(t, errors.Is(err, core.ErrUnavailable) && !strings.Contains(fmt.Sprint(err), "guess"), "got %v from a database that does not answer, want that, without the secret", err)
}

// The time of the last use is stored now and then, and at the end.
func TestStoredUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secret := core.NewSecret()
		s := newShelf(secret)
		stored := auth.NewStored(s, slog.New(slog.DiscardHandler))
		a := auth.New(auth.Options{Stored: stored, Required: true})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- stored.Run(ctx) }()
		use := func() time.Time {
			t.Helper()
			must.Get(a.Authenticate(ask{headers: header("X-API-Key", secret)}.request()))(t)
			return time.Now()
		}
		use()
		time.Sleep(time.Second)
		first := use()
		time.Sleep(time.Minute)
		got := s.usedAt("k1")
		compare.True(t, got.Equal(first), "got last use %v, want %v", got, first)
		use() // within a minute of the last write
		time.Sleep(time.Second)
		if got := s.usedAt("k1"); !got.Equal(first) {
			t.Errorf("got last use %v, want it unchanged", got)
		}
		time.Sleep(time.Minute)
		last := use()
		cancel()
		if err := <-ended; err != nil || !s.usedAt("k1").Equal(last) {
			t.Errorf("got %v and last use %v at the end, want %v", err, s.usedAt("k1"), last)
		}
	})
}
