package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// key is a public key of the signer.
type key struct {
	id         string
	public     any                       // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey
	only       jose.SignatureAlgorithm   // its alg; empty = any of algorithms
	algorithms []jose.SignatureAlgorithm // those that a key of its type can verify
}

// canVerify reports whether the key may verify signatures by the algorithm.
func (k key) canVerify(alg jose.SignatureAlgorithm) bool {
	return slices.Contains(k.algorithms, alg) && (k.only == "" || k.only == alg)
}

// set is the usable keys of a JWKS.
type set struct {
	keys    []key
	skipped []string // why others are not usable
}

// hasKey reports whether there is a key with the id, for any algorithm.
func (s set) hasKey(id string) bool {
	return slices.ContainsFunc(s.keys, func(k key) bool { return k.id == id })
}

// readSet reads a JWKS. It skips unusable keys, as the RFC says.
func readSet(data []byte) (set, error) {
	var read struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(data, &read); {
	case err != nil || read.Keys == nil:
		return set{}, errors.New("it is not a JWKS, an object with the list keys")
	case len(*read.Keys) > maxKeys:
		return set{}, fmt.Errorf("it has %d keys, more than %d", len(*read.Keys), maxKeys)
	}
	var s set
	for i, raw := range *read.Keys {
		k, err := readKey(raw)
		if err != nil {
			s.skipped = append(s.skipped, fmt.Sprintf("key %d: %s", i+1, err))
			continue
		}
		s.keys = append(s.keys, k)
	}
	return s, nil
}

// readKey reads one key. Its errors repeat nothing of the key.
func readKey(raw json.RawMessage) (key, error) {
	var about struct {
		Kty string   `json:"kty"`
		Use string   `json:"use"`
		Ops []string `json:"key_ops"`
	}
	if err := json.Unmarshal(raw, &about); err != nil {
		return key{}, errors.New("it is not a key")
	}
	var read jose.JSONWebKey
	switch {
	case about.Kty == "oct":
		return key{}, errors.New("it is a shared secret; only public keys are accepted")
	case about.Use != "" && about.Use != "sig", len(about.Ops) > 0 && !slices.Contains(about.Ops, "verify"):
		return key{}, errors.New("it is not for signatures")
	case read.UnmarshalJSON(raw) != nil:
		return key{}, errors.New("it cannot be read")
	case !read.IsPublic():
		return key{}, errors.New("it is a private key, which is now exposed")
	}
	k := key{id: read.KeyID, public: read.Key, only: jose.SignatureAlgorithm(read.Algorithm), algorithms: algorithmsFor(read.Key)}
	if !slices.ContainsFunc(allowedAlgorithms(), k.canVerify) {
		return key{}, errors.New("it is too short or too long, or for an algorithm that is not accepted")
	}
	return k, nil
}

// algorithmsFor returns the accepted algorithms that a key of this type can verify.
func algorithmsFor(public any) []jose.SignatureAlgorithm {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= minRSABits && bits <= maxRSABits {
			return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256}
		}
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return []jose.SignatureAlgorithm{jose.ES256}
		}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}
