package config

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"bobbin/app/core"
)

// HashPrefix begins a secret that is told by its hash only, so that the file need
// not hold it.
const HashPrefix = "sha256:"

// Hashed reports whether only the hash of the secret is known.
func (k APIKey) Hashed() bool { return strings.HasPrefix(k.Secret.Reveal(), HashPrefix) }

// Sum returns the SHA-256 of the secret; false for a hash that is none.
func (k APIKey) Sum() ([sha256.Size]byte, bool) {
	digits, hashed := strings.CutPrefix(k.Secret.Reveal(), HashPrefix)
	if !hashed {
		return sha256.Sum256([]byte(k.Secret.Reveal())), true
	}
	var sum [sha256.Size]byte
	n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*sha256.Size)]))
	return sum, err == nil && n == sha256.Size && len(digits) == 2*sha256.Size
}

// NewAPIKey returns a key with a fresh random secret of 256 bits, and the secret.
// It panics if the system's random source fails.
func NewAPIKey(name string) (key APIKey, secret string) {
	secret = core.NewSecret()
	return APIKey{Name: name, Secret: NewSecret(HashPrefix + core.SecretHash(secret))}, secret
}

// ValidKeyName reports whether s can be the name of an API key: 1 to 64 letters,
// digits, and . _ @ -.
func ValidKeyName(s string) bool { return isKeyName(s) }
