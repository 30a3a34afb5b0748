package models

import "time"

// OwnerWebhook is a row of owner_webhooks.
type OwnerWebhook struct {
	Owner     string `gorm:"primaryKey"`
	URL       string
	Secret    string
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}
