package jwt

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

// algorithms are those that signatures may be made by: public keys check them all, so
// that nobody who can check can sign.
func algorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.ES256, jose.EdDSA}
}

// mostKeys bounds a set.
const mostKeys = 100

// The sizes of RSA keys that are taken, in bits: less can be broken, more takes long.
const (
	leastRSA = 2048
	mostRSA  = 8192
)

// key is a public key of the signer's.
type key struct {
	id     string
	public any                       // *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey
	only   jose.SignatureAlgorithm   // the one that it is for; empty = each of fits
	fits   []jose.SignatureAlgorithm // the ones that such a key can check
}

// checks reports whether signatures by the algorithm are checked with the key.
func (k key) checks(alg jose.SignatureAlgorithm) bool {
	return slices.Contains(k.fits, alg) && (k.only == "" || k.only == alg)
}

// set is the keys of a JWKS that can be used.
type set struct {
	keys    []key
	skipped []string // why others cannot, in words
}

// has reports whether there is a key of that id, whatever it is for.
func (s set) has(id string) bool {
	return slices.ContainsFunc(s.keys, func(k key) bool { return k.id == id })
}

// find returns the keys that may have signed by the algorithm: those of the id, and
// without an id all.
func (s set) find(id string, alg jose.SignatureAlgorithm) []key {
	var found []key
	for _, k := range s.keys {
		if (id == "" || k.id == id) && k.checks(alg) {
			found = append(found, k)
		}
	}
	return found
}

// readSet reads a JWKS. Keys that cannot be used are left out, as the RFC says.
func readSet(data []byte) (set, error) {
	var read struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	switch err := json.Unmarshal(data, &read); {
	case err != nil || read.Keys == nil:
		return set{}, errors.New("this is no JWKS: an object with the list keys")
	case len(*read.Keys) > mostKeys:
		return set{}, fmt.Errorf("it has %d keys, more than %d", len(*read.Keys), mostKeys)
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

// readKey reads one key. Its errors have nothing of it.
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
		return key{}, errors.New("it is a shared secret; only public keys are taken")
	case about.Use != "" && about.Use != "sig", len(about.Ops) > 0 && !slices.Contains(about.Ops, "verify"):
		return key{}, errors.New("it is not for signatures")
	case read.UnmarshalJSON(raw) != nil:
		return key{}, errors.New("it cannot be read")
	case !read.IsPublic():
		return key{}, errors.New("it is a private key, which others have seen now")
	}
	k := key{id: read.KeyID, public: read.Key, only: jose.SignatureAlgorithm(read.Algorithm), fits: fits(read.Key)}
	if !slices.ContainsFunc(algorithms(), k.checks) {
		return key{}, errors.New("it is too short or too long, or for an algorithm that is not taken")
	}
	return k, nil
}

// fits returns the algorithms whose signatures such a key can check, of those that are
// taken.
func fits(public any) []jose.SignatureAlgorithm {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits >= leastRSA && bits <= mostRSA {
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
