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
	// Remembered is how long a stored key is cached, and a revoked one may still work.
	Remembered = 2 * time.Second
	// maxCachedKeys bounds the cache.
	maxCachedKeys = 4096
	// saveUsesEvery is how often the times at which keys were last used are saved, and saveTime how long
	// that may take at the end.
	saveUsesEvery, saveTime = time.Minute, 10 * time.Second
)

// Stored are the keys of the database, cached for Remembered. Run saves when they were
// used. Safe for concurrent use.
type Stored struct {
	store core.APIKeyStore
	log   *slog.Logger
	cache *core.Cache[string, cachedEntry] // by hash

	mu          sync.Mutex
	pendingUses map[core.KeyID]time.Time // not saved yet; guarded by mu
}

// cachedEntry is a key and the time at which it was loaded.
type cachedEntry struct {
	key core.APIKey
	at  time.Time
}

// NewStored returns the keys of the store.
func NewStored(store core.APIKeyStore, log *slog.Logger) *Stored {
	return &Stored{store: store, log: log, cache: core.NewCache[string, cachedEntry](maxCachedKeys), pendingUses: map[core.KeyID]time.Time{}}
}

// findKey returns the valid key of the secret; ErrUnauthorized if there is none.
func (s *Stored) findKey(ctx context.Context, secret string) (core.APIKey, error) {
	if !strings.HasPrefix(secret, core.SecretPrefix) {
		return core.APIKey{}, unknownKeyError()
	}
	hash, now := core.SecretHash(secret), time.Now()
	known, ok := s.cache.Get(hash)
	key := known.key
	if !ok || now.Sub(known.at) >= Remembered {
		var err error
		key, err = s.store.ByHash(ctx, hash)
		switch {
		case errors.Is(err, core.ErrNotFound):
			return core.APIKey{}, unknownKeyError()
		case err != nil:
			return core.APIKey{}, err
		}
		s.cache.Set(hash, cachedEntry{key, now}) // no unknown secret: guesses cannot fill the cache
	}
	if err := keyError(key, now); err != nil {
		return core.APIKey{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pendingUses[key.ID] = now
	return key, nil
}

// keyError returns why the key is not valid at that time; nil if it is.
func keyError(key core.APIKey, now time.Time) error {
	switch {
	case key.RevokedAt != nil:
		return unauthorizedError("this API key was revoked")
	case !key.Valid(now):
		return unauthorizedError("this API key has expired")
	default:
		return nil
	}
}

// Run periodically saves when keys were last used, until ctx ends.
func (s *Stored) Run(ctx context.Context) error {
	err := core.Every(ctx, saveUsesEvery, s.saveUses)
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	s.saveUses(last)
	return err
}

// saveUses saves the recorded uses. Those that cannot be saved are dropped: they only
// inform people.
func (s *Stored) saveUses(ctx context.Context) {
	s.mu.Lock()
	used := s.pendingUses
	s.pendingUses = map[core.KeyID]time.Time{}
	s.mu.Unlock()
	if len(used) == 0 {
		return
	}
	if err := s.store.Used(ctx, used); err != nil {
		s.log.WarnContext(ctx, "last use of API keys not saved", slog.Any("err", err))
	}
}
