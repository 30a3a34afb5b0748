package auth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
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
	fetch        func(context.Context) ([]byte, error)
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

// allowedAlgorithms returns the accepted signing algorithms. All are asymmetric, so a
// verifier cannot sign.
func allowedAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.EdDSA}
}

// maxKeys bounds a set.
const maxKeys = 100

// Accepted sizes of RSA keys in bits: shorter keys are weak, longer ones slow.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// canVerify reports whether the key may verify signatures by the algorithm.
func canVerify(k jose.JSONWebKey, alg jose.SignatureAlgorithm) bool {
	var accepted []jose.SignatureAlgorithm
	switch public := k.Key.(type) {
	case *rsa.PublicKey:
		if bits := public.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			accepted = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256}
		}
	case *ecdsa.PublicKey:
		if public.Curve == elliptic.P256() {
			accepted = []jose.SignatureAlgorithm{jose.ES256}
		}
	case ed25519.PublicKey:
		accepted = []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return slices.Contains(accepted, alg) && (k.Algorithm == "" || k.Algorithm == string(alg))
}

// set is the usable keys of a JWKS.
type set struct {
	keys    []jose.JSONWebKey
	skipped []string // why others are not usable
}

// hasKey reports whether there is a key with the id, for any algorithm.
func (s set) hasKey(id string) bool {
	return slices.ContainsFunc(s.keys, func(k jose.JSONWebKey) bool { return k.KeyID == id })
}

// readSet reads a JWKS. It skips unusable keys, as the RFC says.
func readSet(data []byte) (s set, err error) {
	var read struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(data, &read); {
	case err != nil || read.Keys == nil:
		return s, errors.New("it is not a JWKS, an object with the list keys")
	case len(*read.Keys) > maxKeys:
		return s, fmt.Errorf("it has %d keys, more than %d", len(*read.Keys), maxKeys)
	}
	for i, raw := range *read.Keys {
		if k, why := readKey(raw); why == "" {
			s.keys = append(s.keys, k)
		} else {
			s.skipped = append(s.skipped, fmt.Sprintf("key %d: %s", i+1, why))
		}
	}
	return s, nil
}

// readKey reads one key, or says why it is not usable, and repeats nothing of it.
func readKey(raw json.RawMessage) (k jose.JSONWebKey, why string) {
	var about struct {
		Kty string   `json:"kty"`
		Ops []string `json:"key_ops"`
	}
	switch broken := json.Unmarshal(raw, &about) != nil; {
	case about.Kty == "oct":
		return k, "it is a shared secret; only public keys are accepted"
	case broken, k.UnmarshalJSON(raw) != nil:
		return k, "it cannot be read"
	case !k.IsPublic():
		return k, "it is a private key, which is now exposed"
	case k.Use != "" && k.Use != "sig", len(about.Ops) > 0 && !slices.Contains(about.Ops, "verify"):
		return k, "it is not for signatures"
	case !slices.ContainsFunc(allowedAlgorithms(), func(alg jose.SignatureAlgorithm) bool { return canVerify(k, alg) }):
		return k, "it is too short or too long, or for an algorithm that is not accepted"
	}
	return k, ""
}

// Bounds of one fetch.
const (
	fetchTime  = 5 * time.Second
	maxJWKS    = 512 << 10
	maxHeaders = 32 << 10
)

// fromURL returns what reads a JWKS from a server. The operator chose the address, so it may be
// private; but redirects are not followed, because then the server would choose.
func fromURL(address string) func(context.Context) ([]byte, error) {
	client := &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", "application/jwk-set+json, application/json")
		request.Header.Set("User-Agent", "Bobbin")
		response, err := client.Do(request)
		if err != nil {
			return nil, withoutURL(err)
		}
		defer response.Body.Close()
		switch code := response.StatusCode; {
		case code >= 300 && code < 400:
			to := "another path"
			if u, err := url.Parse(response.Header.Get("Location")); err == nil && u.Host != "" {
				to = u.Host
			}
			return nil, fmt.Errorf("the server redirects to %s; set auth.jwt.jwks_url to the final URL", to)
		case code != http.StatusOK:
			return nil, fmt.Errorf("the server answered with status %d %s", code, http.StatusText(code))
		}
		return readAll(response.Body)
	}
}

// withoutURL returns the error of a request without its URL, which may contain a secret.
func withoutURL(err error) error {
	of, ok := errors.AsType[*url.Error](err)
	switch {
	case !ok:
		return err
	case of.Timeout():
		return fmt.Errorf("the server did not answer within %s", fetchTime)
	}
	return of.Err
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJWKS+1))
	switch {
	case err != nil:
		return nil, withoutURL(err)
	case len(data) > maxJWKS:
		return nil, fmt.Errorf("it is larger than %d KiB", maxJWKS>>10)
	}
	return data, nil
}
