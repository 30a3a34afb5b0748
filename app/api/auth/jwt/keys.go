package jwt

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"

	"bobbin/app/core"
)

// How often tokens may make us fetch: whoever can reach us can make up key ids.
const (
	askEvery = 10 * time.Second
	askBurst = 3
)

// After a failed fetch the next one comes so soon, then twice as late each time.
const firstRetry = 5 * time.Second

// KeyOptions say where keys come from: URL or File, and Logger, are required.
type KeyOptions struct {
	URL     string
	File    string
	Refresh time.Duration // how often they are fetched; 0 = 15 min
	Logger  *slog.Logger
}

// Keys are the public keys of a signer, as they were fetched last. Run keeps them
// fresh. Safe for concurrent use.
type Keys struct {
	fetch   source
	refresh time.Duration
	log     *slog.Logger
	asks    *rate.Limiter // fetches because of tokens

	mu      sync.Mutex
	now     set           // guarded by mu
	loaded  bool          // there was a good fetch; guarded by mu
	fetches chan struct{} // closed when the fetch that is under way has ended; nil = none; guarded by mu
}

// NewKeys returns keys that are not fetched yet.
func NewKeys(o KeyOptions) *Keys {
	fetch := fromURL(o.URL)
	if o.File != "" {
		fetch = fromFile(o.File)
	}
	return &Keys{fetch: fetch, refresh: cmp.Or(o.Refresh, 15*time.Minute), log: o.Logger, asks: rate.NewLimiter(rate.Every(askEvery), askBurst)}
}

// Load fetches the keys now. An error leaves those of before, and says what is wrong,
// not where: there are none, or they cannot be had.
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
	k.mu.Lock()
	k.now, k.loaded = fetched, true // also if it is empty: who withdraws all keys means it
	k.mu.Unlock()
	if len(fetched.keys) == 0 {
		return fmt.Errorf("it has no key that can be used: %s", cmp.Or(strings.Join(fetched.skipped, "; "), "it is empty"))
	}
	return nil
}

// Run fetches the keys, at once and then from time to time, until ctx ends.
func (k *Keys) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		wait := k.refresh
		if !k.one(ctx, true) {
			wait, retry = min(retry, k.refresh), min(2*retry, k.refresh)
		} else {
			retry = firstRetry
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// one fetches the keys, or waits for the fetch that is under way; must is for one that
// is due, others are let through now and then. It reports whether there is no need to
// try again soon.
func (k *Keys) one(ctx context.Context, must bool) bool {
	k.mu.Lock()
	if under := k.fetches; under != nil {
		k.mu.Unlock()
		select {
		case <-under:
		case <-ctx.Done():
		}
		_, loaded := k.current()
		return loaded
	}
	if !must && !k.asks.Allow() {
		k.mu.Unlock()
		return true
	}
	ended := make(chan struct{})
	k.fetches = ended
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.fetches = nil
		k.mu.Unlock()
		close(ended)
	}()
	// Others wait for it too: it does not end with the request that began it.
	err := k.Load(context.WithoutCancel(ctx))
	if err != nil && ctx.Err() == nil {
		k.log.WarnContext(ctx, "keys of tokens not fetched", slog.Any("err", err))
	}
	return err == nil
}

// find returns the keys that may have made a signature. An id that is not known may be
// new: then the keys are fetched, if that is not done too often. ErrUnauthorized says
// that there is no such key, ErrUnavailable that none were had so far.
func (k *Keys) find(ctx context.Context, id string, alg jose.SignatureAlgorithm) ([]key, error) {
	now, loaded := k.current()
	if !loaded || id != "" && !now.has(id) {
		k.one(ctx, false)
		now, loaded = k.current()
	}
	if !loaded {
		return nil, &core.Error{Kind: core.ErrUnavailable, RetryAfter: firstRetry,
			Message: "the keys of tokens cannot be had now; come again in a moment"}
	}
	found := now.find(id, alg)
	switch {
	case len(found) == 0 && id != "" && now.has(id):
		return nil, invalid("the token is signed by an algorithm that its key is not for")
	case len(found) == 0:
		return nil, invalid("the token is signed with a key that is not known here")
	case id == "" && len(found) > 1:
		return nil, invalid("the token does not say which key it is signed with (kid), and there are several")
	}
	return found, nil
}

func (k *Keys) current() (set, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now, k.loaded
}

// About says in words which keys there are, and which cannot be used.
func (k *Keys) About() (usable, skipped []string) {
	now, _ := k.current()
	for _, one := range now.keys {
		algs := one.fits
		if one.only != "" {
			algs = []jose.SignatureAlgorithm{one.only}
		}
		words := []string{}
		for _, alg := range algs {
			words = append(words, string(alg))
		}
		usable = append(usable, fmt.Sprintf("%q (%s)", core.Clip(one.id, 64), strings.Join(words, ", ")))
	}
	return usable, slices.Clone(now.skipped)
}
