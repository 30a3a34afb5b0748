package models

import (
	"time"

	"bobbin/app/core"
)

// Delivery is a row of deliveries.
type Delivery struct {
	ID         string `gorm:"primaryKey"`
	Owner      string
	SessionID  string
	RunID      string
	Kind       string
	Event      string
	Target     string
	Secret     string
	State      string
	Attempt    int
	Tries      int
	Since      time.Time
	LeaseOwner string
	LeaseUntil *time.Time // by the database's clock
	NextAt     *time.Time // by the database's clock; nil = at once
	Error      string
	CreatedAt  time.Time `gorm:"autoCreateTime:false"`
	FinishedAt *time.Time
}

// TableName is the table's name.
func (Delivery) TableName() string { return "deliveries" }

// Core returns the delivery of the row.
func (d Delivery) Core() core.Delivery {
	return core.Delivery{
		ID: core.DeliveryID(d.ID), Owner: d.Owner, SessionID: core.SessionID(d.SessionID), RunID: core.RunID(d.RunID),
		Kind: core.DeliveryKind(d.Kind), Event: core.EventType(d.Event), Target: core.Target(d.Target), Secret: d.Secret,
		State: core.DeliveryState(d.State), Attempt: d.Attempt, Tries: d.Tries, Since: utc(d.Since),
		LeaseOwner: d.LeaseOwner, LeaseUntil: utcPtr(d.LeaseUntil), NextAt: utcPtr(d.NextAt), Error: d.Error,
		CreatedAt: utc(d.CreatedAt), FinishedAt: utcPtr(d.FinishedAt),
	}
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
