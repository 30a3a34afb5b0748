package core

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"time"
)

// SecretPrefix begins the secrets of API keys, so that people and scanners know them.
const SecretPrefix = "bob_"

// APIKey is a key of the database. Its secret is nowhere.
type APIKey struct {
	ID         KeyID      `json:"id" gorm:"primaryKey"`
	Name       string     `json:"name"`
	Owner      string     `json:"owner"` // whose rows callers with the key see
	Rights     Scopes     `json:"scopes" gorm:"-"`
	CreatedAt  time.Time  `json:"created_at" gorm:"autoCreateTime:false"`
	ExpiresAt  *time.Time `json:"expires_at"`   // null = never
	LastUsedAt *time.Time `json:"last_used_at"` // null = never; to the minute
	RevokedAt  *time.Time `json:"revoked_at"`   // null = it was not
}

// Valid reports whether the key opens anything at that time.
func (k APIKey) Valid(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// NewSecret returns a fresh random secret of an API key, of 256 bits. It panics if the
// system's random source fails.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the program instead
	return SecretPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// SecretHash returns what is stored of a secret: its SHA-256 in hex. A slow hash would
// gain nothing, as nobody can go through 256 random bits.
func SecretHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
