package models

import (
	"time"

	"bobbin/app/core"
)

// Delivery is a row of deliveries.
type Delivery struct {
	ID         string `gorm:"primaryKey;type:uuid"`
	Owner      string
	SessionID  string `gorm:"type:uuid"`
	RunID      string `gorm:"type:uuid"`
	Kind       string
	Event      string
	Target     string
	Receiver   string // core.Target.Receiver
	Secret     string
	State      string
	Attempt    int
	Tries      int
	Since      time.Time
	LeaseOwner string
	LeaseUntil *time.Time // by the database's clock
	DueAt      time.Time  // the next try, or the end of the lease; likewise
	Error      string
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	FinishedAt *time.Time
}

// Core returns the delivery of the row.
func (d Delivery) Core() core.Delivery {
	out := core.Delivery{
		ID: core.DeliveryID(d.ID), Owner: d.Owner, SessionID: core.SessionID(d.SessionID), RunID: core.RunID(d.RunID),
		Kind: core.DeliveryKind(d.Kind), Event: core.EventType(d.Event), Target: core.Target(d.Target), Receiver: d.Receiver, Secret: d.Secret,
		State: core.DeliveryState(d.State), Attempt: d.Attempt, Tries: d.Tries, Since: toUTC(d.Since),
		LeaseOwner: d.LeaseOwner, LeaseUntil: toUTCPtr(d.LeaseUntil), Error: d.Error,
		CreatedAt: toUTC(d.CreatedAt), FinishedAt: toUTCPtr(d.FinishedAt),
	}
	if out.State == core.DeliveryPending && d.LeaseUntil == nil && d.Error != "" && d.DueAt.After(d.Since) {
		out.NextAt = toUTCPtr(&d.DueAt)
	}
	return out
}

// ReceiverOutage is a row of receiver_outages: a receiver that the last attempt did not
// reach.
type ReceiverOutage struct {
	Receiver string    `gorm:"primaryKey"`
	Tries    int       // since the last success
	Since    time.Time // of the first of them; by the database's clock
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
	Owner     string `gorm:"primaryKey"`
	URL       string
	Secret    string
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}
