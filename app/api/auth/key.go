package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"

	"bobbin/app/core"
)

// Key is an API key of the configuration. Several keys may have one name: they act for the same
// owner, so that a secret can be changed without a gap.
type Key struct {
	name   string
	sum    [sha256.Size]byte
	rights core.Rights
}

// NewKey returns the key of the owner name; the secret itself is not kept. The
// name may not be empty. The name core.LocalOwner gives access to what was made
// without keys.
func NewKey(name, secret string, rights core.Rights) Key {
	return Key{name: name, sum: sha256.Sum256([]byte(secret)), rights: rights}
}

// HashedKey returns the key of the owner name whose secret has that SHA-256 sum.
func HashedKey(name string, sum [sha256.Size]byte, rights core.Rights) Key {
	return Key{name: name, sum: sum, rights: rights}
}

// NewToken returns a random token for Options.LocalToken. It panics if the
// system's random source fails.
func NewToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// matches reports whether the secret is this key's. The time it takes tells
// nothing of how much of it was right.
func (k Key) matches(sum [sha256.Size]byte) bool {
	return subtle.ConstantTimeCompare(k.sum[:], sum[:]) == 1
}

// identity is whom the key acts for.
func (k Key) identity() core.Identity {
	return core.Identity{Owner: k.name, Key: k.name, Rights: k.rights}
}
