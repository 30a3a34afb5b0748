package models

import (
	"strings"

	"bobbin/app/core"
)

// APIKey is a row of api_keys.
type APIKey struct {
	core.APIKey
	SecretHash string // SHA-256 of the secret, in hex
	Scopes     string // words with spaces
}

// Core returns the key of the row. Scopes that this program does not know grant nothing.
func (r APIKey) Core() core.APIKey {
	for word := range strings.FieldsSeq(r.Scopes) {
		if one, err := core.ParseRights([]string{word}); err == nil {
			r.Rights |= one
		}
	}
	return r.APIKey
}
