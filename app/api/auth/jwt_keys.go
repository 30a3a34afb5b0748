package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"bobbin/app/core"
)

// How often tokens may trigger a fetch: anyone can send tokens with made-up key ids.
const (
	tokenFetchEvery = 10 * time.Second
	tokenFetchBurst = 3
)

// firstRetry is the delay after a failed fetch; it doubles with each further failure.
const firstRetry = 5 * time.Second

// KeyOptions say where keys come from. URL or File, and Logger, are required.
type KeyOptions struct {
	URL     string
	File    string
	Refresh time.Duration // interval between fetches; 0 = 15 min
	Logger  *slog.Logger
}

// Keys are the public keys of a signer as last fetched. Run refreshes them. Safe for
// concurrent use.
type Keys struct {
	KeyOptions
	fetch        source
	tokenFetches *rate.Limiter // limits fetches for unknown key ids
	fetches      singleflight.Group
	keys         atomic.Pointer[set] // nil = no fetch has succeeded
}

// NewKeys returns an empty set; Load or Run fetches the keys.
func NewKeys(o KeyOptions) *Keys {
	fetch := fromURL(o.URL)
	if o.File != "" {
		fetch = func(context.Context) ([]byte, error) {
			f, err := os.Open(o.File)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return readAll(f)
		}
	}
	o.Refresh = cmp.Or(o.Refresh, 15*time.Minute)
	return &Keys{KeyOptions: o, fetch: fetch, tokenFetches: rate.NewLimiter(rate.Every(tokenFetchEvery), tokenFetchBurst)}
}

// Load fetches the keys now. After an error the previous keys stay, unless the fetched set
// has no usable key. The error does not name the URL or file.
func (k *Keys) Load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	data, err := k.fetch(ctx)
	if err != nil {
		return err
	}
	fetched, err := readSet(data)
	if err != nil {
		return err
	}
	k.keys.Store(&fetched) // also if empty: the signer has withdrawn all keys
	if len(fetched.keys) == 0 {
		return fmt.Errorf("it has no usable key: %s", cmp.Or(strings.Join(fetched.skipped, "; "), "it is empty"))
	}
	return nil
}

// Run fetches the keys immediately and then periodically, until ctx ends.
func (k *Keys) Run(ctx context.Context) error {
	retry := firstRetry
	return core.Repeat(ctx, nil, func(ctx context.Context) (pause time.Duration) {
		if k.fetchOnce(ctx, nil) {
			retry = firstRetry
			return k.Refresh
		}
		pause, retry = min(retry, k.Refresh), min(2*retry, k.Refresh)
		return pause
	})
}

// errNotFetched says that no fetch was made for a token.
var errNotFetched = errors.New("the keys were not fetched")

// fetchOnce fetches the keys, or waits for the current fetch. isMissing reports whether a token still
// needs a fetch, which then counts against tokenFetches; nil is for a periodic fetch. It returns false
// if there was no successful fetch.
func (k *Keys) fetchOnce(ctx context.Context, isMissing func() bool) bool {
	_, err, _ := k.fetches.Do("", func() (any, error) {
		if isMissing != nil && !(isMissing() && k.tokenFetches.Allow()) {
			return nil, errNotFetched
		}
		// Other requests wait for the fetch too, so it does not end with the one that started it.
		err := k.Load(context.WithoutCancel(ctx))
		if err != nil && ctx.Err() == nil {
			k.Logger.WarnContext(ctx, "keys for tokens not fetched", slog.Any("err", err))
		}
		return nil, err
	})
	return err == nil
}

// findKeys returns the keys that may verify a signature. An unknown id may be new: then the
// keys are fetched, within the limit of tokenFetches. ErrUnauthorized means that there is no
// such key, ErrUnavailable that no fetch has succeeded yet.
func (k *Keys) findKeys(ctx context.Context, id string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey, error) {
	isMissing := func() bool {
		now := k.keys.Load()
		return now == nil || id != "" && !now.hasKey(id)
	}
	if isMissing() {
		k.fetchOnce(ctx, isMissing)
	}
	now := k.keys.Load()
	if now == nil {
		return nil, &core.Error{Kind: core.ErrUnavailable, RetryAfter: firstRetry,
			Message: "the keys for tokens have not been fetched yet; try again in a moment"}
	}
	// A token without an id is tried with all keys.
	var found []jose.JSONWebKey
	for _, k := range now.keys {
		if (id == "" || k.KeyID == id) && canVerify(k, alg) {
			found = append(found, k)
		}
	}
	switch {
	case len(found) == 0 && id != "" && now.hasKey(id):
		return nil, invalidToken("the signing algorithm of the token does not match its key")
	case len(found) == 0:
		return nil, invalidToken("the token is signed with an unknown key")
	case id == "" && len(found) > 1:
		return nil, invalidToken("the token does not name its key (kid), and several keys match")
	}
	return found, nil
}

// About describes the usable keys, and why others are not usable.
func (k *Keys) About() (usable, skipped []string) {
	now := cmp.Or(k.keys.Load(), &set{})
	for _, one := range now.keys {
		var words []string
		for _, alg := range allowedAlgorithms() {
			if canVerify(one, alg) {
				words = append(words, string(alg))
			}
		}
		usable = append(usable, fmt.Sprintf("%q (%s)", core.Clip(one.KeyID, 64), strings.Join(words, ", ")))
	}
	return usable, slices.Clone(now.skipped)
}
