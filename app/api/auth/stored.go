package auth

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"bobbin/app/core"
)

const (
	// Remembered is how long a key of the database is not looked up again: so long a
	// revoked one may go on opening a server.
	Remembered = 2 * time.Second
	// remembered bounds how many keys are; beyond it all are forgotten.
	remembered = 4096
	// noted is how exact the time is at which a key was last used.
	noted = time.Minute
	// noteEvery is how often these times are stored.
	noteEvery = 10 * time.Second
)

// keyStore holds the keys of the database (repositories.APIKeys).
type keyStore interface {
	// ByHash returns the key of a secret, ErrNotFound when there is none.
	ByHash(ctx context.Context, hash string) (core.APIKey, error)
	// ByIDs returns those of the keys that there are.
	ByIDs(ctx context.Context, ids []core.KeyID) ([]core.APIKey, error)
	// Used stores when keys were last used.
	Used(ctx context.Context, at map[core.KeyID]time.Time) error
}

// Stored are the keys of the database, remembered for a moment. Run stores when they
// were used. Safe for concurrent use.
type Stored struct {
	store keyStore
	log   *slog.Logger

	mu    sync.Mutex
	known map[string]seen          // by hash; guarded by mu
	used  map[core.KeyID]time.Time // not stored yet; guarded by mu
	told  map[core.KeyID]time.Time // stored last; guarded by mu
}

// seen is a key as it was at a time.
type seen struct {
	key core.APIKey
	at  time.Time
}

// NewStored returns the keys of the store.
func NewStored(store keyStore, log *slog.Logger) *Stored {
	return &Stored{store: store, log: log, known: map[string]seen{}, used: map[core.KeyID]time.Time{}, told: map[core.KeyID]time.Time{}}
}

// find returns the valid key of the secret. ErrUnauthorized says that there is none.
func (s *Stored) find(ctx context.Context, secret string) (core.APIKey, error) {
	if !strings.HasPrefix(secret, core.SecretPrefix) {
		return core.APIKey{}, unknown()
	}
	hash, now := core.SecretHash(secret), time.Now()
	key, ok := s.recall(hash, now)
	if !ok {
		var err error
		key, err = s.store.ByHash(ctx, hash)
		switch {
		case errors.Is(err, core.ErrNotFound):
			return core.APIKey{}, unknown()
		case err != nil:
			return core.APIKey{}, err
		}
		s.remember(hash, key, now)
	}
	if err := refusal(key, now); err != nil {
		return core.APIKey{}, err
	}
	s.note(key.ID, now)
	return key, nil
}

// refusal returns why the key opens nothing at that time; nil if it does.
func refusal(key core.APIKey, now time.Time) error {
	switch {
	case key.RevokedAt != nil:
		return unauthorized("this API key was revoked")
	case !key.Valid(now):
		return unauthorized("this API key has expired")
	default:
		return nil
	}
}

// lapsed returns which of the keys open nothing any more, and why.
func (s *Stored) lapsed(ctx context.Context, ids []core.KeyID) (map[core.KeyID]error, error) {
	keys, err := s.store.ByIDs(ctx, ids)
	if err != nil {
		return nil, err
	}
	out, now := map[core.KeyID]error{}, time.Now()
	for _, id := range ids {
		out[id] = unknown()
	}
	for _, key := range keys {
		delete(out, key.ID)
		if why := refusal(key, now); why != nil {
			out[key.ID] = why
		}
	}
	return out, nil
}

func (s *Stored) recall(hash string, now time.Time) (core.APIKey, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[hash]
	return k.key, ok && now.Sub(k.at) < Remembered
}

// remember keeps a key. Secrets that are none are not kept, so that guesses fill
// nothing.
func (s *Stored) remember(hash string, key core.APIKey, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= remembered {
		clear(s.known)
	}
	s.known[hash] = seen{key, now}
}

// note remembers that the key was used.
func (s *Stored) note(id core.KeyID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.told[id]) >= noted {
		s.used[id] = now
	}
}

// Run stores from time to time when keys were last used, until ctx ends.
func (s *Stored) Run(ctx context.Context) error {
	tick := time.NewTicker(noteEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.save(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteEvery)
			defer cancel()
			s.save(last)
			return nil
		}
	}
}

// save stores what was noted. What cannot be stored is forgotten: it is for people.
func (s *Stored) save(ctx context.Context) {
	s.mu.Lock()
	used := s.used
	s.used = map[core.KeyID]time.Time{}
	if len(s.told)+len(used) > remembered {
		clear(s.told)
	}
	for id, at := range used {
		s.told[id] = at
	}
	s.mu.Unlock()
	if len(used) == 0 {
		return
	}
	if err := s.store.Used(ctx, used); err != nil {
		s.log.WarnContext(ctx, "use of API keys not noted", slog.Any("err", err))
	}
}
