// Package jwttest signs tokens and serves the keys for them, for tests.
package jwttest

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"bobbin/tests/must"
)

// Issuer and Audience are those of Claims.
const (
	Issuer   = "https://login.example"
	Audience = "bobbin"
)

// rsaKey is one key for all RSA signers, because generating one is slow.
var rsaKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) }) //nolint:gochecknoglobals // constant once it is generated

// Signer signs tokens. Safe for concurrent use.
type Signer struct {
	ID      string // of its key
	Alg     jose.SignatureAlgorithm
	private any
	public  any
}

// NewSigner returns a signer for the algorithm, such as "ES256". RSA signers share one key.
func NewSigner(t testing.TB, id, alg string) *Signer {
	t.Helper()
	s := &Signer{ID: id, Alg: jose.SignatureAlgorithm(alg)}
	var err error
	switch alg[:2] {
	case "Ed":
		var private ed25519.PrivateKey
		s.public, private, err = ed25519.GenerateKey(rand.Reader)
		s.private = private
	case "ES":
		curve := map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384()}[alg]
		var private *ecdsa.PrivateKey
		if private, err = ecdsa.GenerateKey(curve, rand.Reader); err == nil {
			s.private, s.public = private, private.Public()
		}
	default:
		var private *rsa.PrivateKey
		if private, err = rsaKey(); err == nil {
			s.private, s.public = private, private.Public()
		}
	}
	must.Do(t, err)
	return s
}

// Claims returns the claims of a valid token of the user for five minutes, with the
// changes; nil removes a claim.
func Claims(user string, changes map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": Issuer, "aud": Audience, "sub": user, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// Token returns a token with the claims; headers are added to alg and kid.
func (s *Signer) Token(t testing.TB, claims map[string]any, headers map[jose.HeaderKey]any) string {
	t.Helper()
	return Sign(t, jose.SigningKey{Algorithm: s.Alg, Key: s.private}, s.ID, claims, headers)
}

// User returns a valid token of the user.
func (s *Signer) User(t testing.TB, user string) string {
	t.Helper()
	return s.Token(t, Claims(user, nil), nil)
}

// Sign returns a token signed with the key.
func Sign(t testing.TB, with jose.SigningKey, id string, claims any, headers map[jose.HeaderKey]any) string {
	t.Helper()
	o := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{}}
	maps.Copy(o.ExtraHeaders, headers)
	if id != "" {
		o.ExtraHeaders["kid"] = id
	}
	signer := must.Get(jose.NewSigner(with, o))(t)
	payload := must.Get(json.Marshal(claims))(t)
	signed := must.Get(signer.Sign(payload))(t)
	return must.Get(signed.CompactSerialize())(t)
}

// Public returns the public key.
func (s *Signer) Public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: s.public, KeyID: s.ID, Algorithm: string(s.Alg), Use: "sig"}
}

// Private returns the signing key.
func (s *Signer) Private() any { return s.private }

// JWKS returns the public keys as they are served.
func JWKS(t testing.TB, signers ...*Signer) []byte {
	t.Helper()
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, s := range signers {
		set.Keys = append(set.Keys, s.Public())
	}
	return must.Get(json.Marshal(set))(t)
}

// Server serves keys over real HTTP. Safe for concurrent use.
type Server struct {
	URL string

	mu      sync.Mutex
	answer  http.HandlerFunc // guarded by mu
	fetches int              // guarded by mu
}

// Serve serves the keys of the signers until the test ends.
func Serve(t testing.TB, signers ...*Signer) *Server {
	t.Helper()
	s := &Server{}
	s.Set(JWKS(t, signers...))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.fetches++
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL + "/keys"
	return s
}

// Set makes the server answer with the body from now on.
func (s *Server) Set(body []byte) {
	s.Do(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
}

// Do makes the server answer with the handler from now on.
func (s *Server) Do(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Fetches returns how often the keys were fetched.
func (s *Server) Fetches() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}
