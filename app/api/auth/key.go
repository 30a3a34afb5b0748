package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"bobbin/app/core"
)

// Key is an API key of the configuration. Several keys may have the same name and act for
// the same owner, so that a secret can be rotated without downtime.
type Key struct {
	name   string
	sum    [sha256.Size]byte
	rights core.Scopes
}

// NewKey returns the key of the owner name; it does not keep the secret. The name must
// not be empty. The name core.LocalOwner gives access to data created without keys.
func NewKey(name, secret string, rights core.Scopes) Key {
	return Key{name: name, sum: sha256.Sum256([]byte(secret)), rights: rights}
}

// HashedKey returns the key of the owner name whose secret has that SHA-256 sum.
func HashedKey(name string, sum [sha256.Size]byte, rights core.Scopes) Key {
	return Key{name: name, sum: sum, rights: rights}
}

// NewToken returns a random token for Options.LocalToken. It panics if the
// system's random source fails.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// matchesSum reports whether the sum is of this key's secret, in constant time.
func (k Key) matchesSum(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1
}
