package models

import (
	"strings"
	"time"

	"bobbin/app/core"
)

// APIKey is a row of api_keys.
type APIKey struct {
	ID         string `gorm:"primaryKey"`
	Owner      string
	Name       string
	SecretHash string    // SHA-256 of the secret, in hex
	Scopes     string    // words with spaces
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	ExpiresAt  *time.Time
	LastUsedAt *time.Time
	RevokedAt  *time.Time
}

// APIKeyFrom returns the row of a key whose secret has that hash.
func APIKeyFrom(k core.APIKey, hash string) APIKey {
	return APIKey{
		ID: string(k.ID), Owner: k.Owner, Name: k.Name, SecretHash: hash, Scopes: k.Rights.String(),
		CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt, LastUsedAt: k.LastUsedAt, RevokedAt: k.RevokedAt,
	}
}

// Core returns the key of the row. Scopes that this program does not know grant nothing.
func (r APIKey) Core() core.APIKey {
	k := core.APIKey{
		ID: core.KeyID(r.ID), Owner: r.Owner, Name: r.Name, CreatedAt: toUTC(r.CreatedAt),
		ExpiresAt: toUTCPtr(r.ExpiresAt), LastUsedAt: toUTCPtr(r.LastUsedAt), RevokedAt: toUTCPtr(r.RevokedAt),
	}
	for word := range strings.FieldsSeq(r.Scopes) {
		if one, err := core.ParseRights([]string{word}); err == nil {
			k.Rights |= one
		}
	}
	return k
}
