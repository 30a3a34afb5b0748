package models

import "time"

// IdempotencyKey is a row of idempotency_keys: a request that may come again, and
// the answer it gets then.
type IdempotencyKey struct {
	Owner       string `gorm:"primaryKey"`
	Key         string `gorm:"primaryKey"`
	Target      string // method and path
	RequestHash string
	Status      *int // of the answer; nil = still being worked on
	ContentType string
	Body        []byte
	CreatedAt   time.Time `gorm:"autoCreateTime:false"`
	ExpiresAt   time.Time
}

// TableName is the table's name.
func (IdempotencyKey) TableName() string { return "idempotency_keys" }
