package auth

import (
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
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
)

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

// source reads a JWKS.
type source func(ctx context.Context) ([]byte, error)

// fromURL returns a source that asks a server. The operator chose the address, so it may be
// private; but redirects are not followed, because then the server would choose.
func fromURL(address string) source {
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
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	if of.Timeout() {
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
