package models

import (
	"time"

	"bobbin/app/core"
)

// IdempotencyKey is a row of idempotency_keys: a request that may come again, and
// the answer it gets then.
type IdempotencyKey struct {
	Owner       string `gorm:"primaryKey"`
	Key         string `gorm:"primaryKey"`
	Target      string // method and path
	RequestHash string // of the body; while it is being worked on, the token of who does
	Status      *int   // of the answer; nil = still being worked on
	ContentType string
	Location    string
	Body        []byte    // nil = the answer was not kept
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`
	ExpiresAt   time.Time
}

// TableName is the table's name.
func (IdempotencyKey) TableName() string { return "idempotency_keys" }

// Core returns what is known of the request.
func (r IdempotencyKey) Core() core.KeyedAnswer {
	a := core.KeyedAnswer{
		Target: r.Target, RequestHash: r.RequestHash, ContentType: r.ContentType, Location: r.Location,
		Body: r.Body, Kept: r.Body != nil,
	}
	if r.Status != nil {
		a.Status = *r.Status
	}
	return a
}
