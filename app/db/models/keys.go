package models

import (
	"strings"
	"time"

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

// IdempotencyKey is a row of idempotency_keys: a request that may be repeated, and its
// stored answer.
type IdempotencyKey struct {
	Owner       string `gorm:"primaryKey"`
	Key         string `gorm:"primaryKey"`
	Target      string // method and path
	RequestHash string // of the body; while in progress the token of the request
	Status      *int   // of the answer; nil = in progress
	ContentType string
	Location    string
	Body        []byte    // nil = the answer was not kept
	Result      string    // what the request has committed; empty = nothing
	ResultHash  string    // of the body of the request that committed it
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`
	ExpiresAt   time.Time
}

// IdempotencyMention is a row of idempotency_mentions: an id or a user that a stored
// answer, or the path of its request, contains.
type IdempotencyMention struct {
	Mention string `gorm:"primaryKey"` // an id, or "user " and the name of one
	Owner   string `gorm:"primaryKey"`
	Key     string `gorm:"primaryKey"`
}

// Core returns the state of the request.
func (r IdempotencyKey) Core() core.KeyedAnswer {
	a := core.KeyedAnswer{
		Target: r.Target, RequestHash: r.RequestHash, ContentType: r.ContentType, Location: r.Location,
		Body: r.Body, Kept: r.Body != nil,
	}
	if r.Result != "" && r.Body == nil {
		a.Result = &core.KeyedResult{RequestHash: r.ResultHash, Name: r.Result}
	} else if r.Status != nil {
		a.Status = *r.Status
	}
	return a
}
