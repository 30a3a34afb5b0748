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

// Deletion is a row of deletions. Its User is empty when it is finished.
type Deletion struct {
	core.Deletion
	Target string    // core.Deletion.Target
	DueAt  time.Time // the next attempt, or the end of the lease; by the database's clock; zero = it is new
}

// Core returns the deletion of the row.
func (r Deletion) Core() core.Deletion {
	d := r.Deletion
	if d.Kind == core.DeleteSession {
		d.SessionID = core.SessionID(r.Target)
	}
	switch d.Status = core.DeletionPending; {
	case r.FinishedAt != nil:
		d.Status = core.DeletionSucceeded
	case r.Lease != "":
		d.Status = core.DeletionRunning
	}
	return d
}

// SlackThread is a row of slack_threads.
type SlackThread struct {
	core.SlackThread
	FirstSeq   int64
	SentSeq    int64
	LastSeq    int64
	LeaseOwner string
	LeaseUntil *time.Time
	DueAt      time.Time
	Reason     string
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
}

// SlackItem is a row of slack_inbox.
type SlackItem struct {
	core.SlackItem
	Payload    string    // empty when it is done
	DueAt      time.Time // the next attempt, or the end of the lease; by the database's clock; zero = it is new
	FinishedAt *time.Time
}

// TableName is the table's name.
func (SlackItem) TableName() string { return "slack_inbox" }

// Core returns the item of the row.
func (r SlackItem) Core() core.SlackItem {
	r.SlackItem.Payload = []byte(r.Payload)
	return r.SlackItem
}
