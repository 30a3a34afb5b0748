package models

import (
	"time"

	"bobbin/app/core"
)

// Delivery is a row of deliveries.
type Delivery struct {
	core.Delivery
	Target string    // with the parts that may be secret, which core.Target hides
	DueAt  time.Time // the next try, or the end of the lease; by the database's clock
}

// Core returns the delivery of the row.
func (d Delivery) Core() core.Delivery {
	out := d.Delivery
	out.Target = core.Target(d.Target)
	if out.State == core.DeliveryPending && d.LeaseUntil == nil && d.Error != "" && d.DueAt.After(d.Since) {
		out.NextAt = &d.DueAt
	}
	return out
}

// Webhook are the columns of a core.Webhook; empty = there is none.
type Webhook struct {
	URL    string
	Secret string
}

// WebhookFrom returns the columns of w.
func WebhookFrom(w *core.Webhook) Webhook {
	if w == nil {
		return Webhook{}
	}
	return Webhook{URL: string(w.URL), Secret: w.Secret}
}

// Core returns the webhook of the columns, nil if there is none.
func (w Webhook) Core() *core.Webhook {
	if w.URL == "" {
		return nil
	}
	return &core.Webhook{URL: core.Target(w.URL), Secret: w.Secret}
}

// OwnerWebhook is a row of owner_webhooks.
type OwnerWebhook struct {
	Owner string `gorm:"primaryKey"`
	Webhook
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}
