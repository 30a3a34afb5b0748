package core

import (
	"encoding/base64"
	"net/url"
	"strings"
	"time"
)

// DeliveryID names a delivery.
type DeliveryID string

// DeliveryKind is how something is delivered.
type DeliveryKind string

// DeliveryWebhook is an HTTP request to an address that a caller named.
const DeliveryWebhook DeliveryKind = "webhook"

// DeliveryState says how far a delivery has come.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending" // it is tried, now or later
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed" // it is not tried any more
)

// Target is an address that something is delivered to. As text, in JSON too, it is
// without its user and query, which may hold a secret: string(t) is the whole.
type Target string

// String returns what may be seen of the address.
func (t Target) String() string {
	u, err := url.Parse(string(t))
	if err != nil {
		return "***"
	}
	if u.User != nil {
		u.User = url.User("***")
	}
	if u.RawQuery != "" {
		u.RawQuery = "***"
	}
	u.Fragment = ""
	return u.String()
}

// Receiver returns the host of the address, and its port if it names one.
func (t Target) Receiver() string {
	u, err := url.Parse(string(t))
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// MarshalText returns what may be seen of the address.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Webhook is where the ends of runs are told.
type Webhook struct {
	URL    Target `json:"url" doc:"Without parts that may be secret."`
	Secret string `json:"-"` // whsec_ and the key in base64; empty = the setting webhooks.secret
}

// String returns what may be seen of the webhook.
func (w Webhook) String() string { return w.URL.String() }

// Delivery is a report that has to reach somebody outside. It is written in the
// transaction of what it reports, and tried until it arrives or there is no hope.
type Delivery struct {
	ID         DeliveryID    `json:"id" doc:"The 'webhook-id' that the receiver gets." gorm:"primaryKey;type:uuid"`
	Owner      string        `json:"-"`
	SessionID  SessionID     `json:"session_id" gorm:"type:uuid"`
	Title      string        `json:"title,omitempty" doc:"Of the session; in lists of all runs only." gorm:"-"`
	RunID      RunID         `json:"run_id" gorm:"type:uuid"`
	Kind       DeliveryKind  `json:"kind" enum:"webhook"`
	Event      EventType     `json:"event" doc:"The reported event." example:"run.succeeded"`
	Target     Target        `json:"target" doc:"The URL, without parts that may be secret." gorm:"-"`
	Secret     string        `json:"-"` // as Webhook.Secret
	State      DeliveryState `json:"state" enum:"pending,delivered,failed"`
	Attempt    int           `json:"attempt" doc:"Number of attempts."`
	Tries      int           `json:"-"` // the same since Since
	Since      time.Time     `json:"-"` // when it was made, or asked for again
	LeaseOwner string        `json:"-"` // the process that delivers it
	LeaseUntil *time.Time    `json:"-"` // by the database's clock
	NextAt     *time.Time    `json:"next_at,omitempty" doc:"Time of the next attempt." gorm:"-"`
	Error      string        `json:"error,omitempty" doc:"Why the last attempt failed."`
	CreatedAt  time.Time     `json:"created_at" gorm:"autoCreateTime:false"`
	FinishedAt *time.Time    `json:"finished_at,omitempty"`
	TakenOver  bool          `json:"-" gorm:"-"` // as it is claimed: another process had it, and has not settled it
	Receiver   string        `json:"-"`          // Target.Receiver
}

// DeliveryClaim asks for deliveries that are due.
type DeliveryClaim struct {
	Worker    string
	Lease     time.Duration  // by the database's clock
	Limit     int            // most of all
	Each      int            // most of one receiver
	Receivers map[string]int // the same of single receivers; 0 = none
}

// Settlement is what came of one try of a delivery.
type Settlement struct {
	ID      DeliveryID
	Attempt int           // of the delivery, as it was claimed
	State   DeliveryState // pending: it is tried again
	Wait    time.Duration // until then, in whole seconds; with DeliveryPending
	Error   string        // why it did not arrive

	Unreached bool // nobody has answered
	Probes    bool // with DeliveryPending: it keeps its place before the others of its receiver, and is tried for all
}

// ReceiverGivenUp asks for the deliveries to a receiver that was not reached for long
// to be given up.
type ReceiverGivenUp struct {
	Receiver string
	Age      time.Duration // for so long they have been due
	Reason   string        // the error of the deliveries
	Limit    int           // most of them
}

// DeliveryStats is what waits to be delivered, in the whole database.
type DeliveryStats struct {
	Waiting int
	Oldest  time.Duration // since the oldest of them was made
}

// DeliveryData is the data of delivery.updated. Where it goes is not in it: the feed
// is shown to more people than those who may know.
type DeliveryData struct {
	DeliveryID DeliveryID    `json:"delivery_id"`
	Kind       DeliveryKind  `json:"kind" enum:"webhook"`
	Event      EventType     `json:"event"`
	State      DeliveryState `json:"state" enum:"pending,delivered,failed"`
	Attempt    int           `json:"attempt"`
	Error      string        `json:"error,omitempty"`
}

// DeliveryQuery asks for deliveries of all runs.
type DeliveryQuery struct {
	State DeliveryState `query:"state" enum:"pending,delivered,failed" doc:"Only these."`
	PageQuery
}

// Updated returns the event that tells how the delivery stands.
func (d Delivery) Updated() Event {
	return NewEvent(d.SessionID, d.RunID, EventDeliveryUpdated, DeliveryData{
		DeliveryID: d.ID, Kind: d.Kind, Event: d.Event, State: d.State, Attempt: d.Attempt, Error: d.Error,
	})
}

// DeliveryError says why a try of a delivery failed. Any other error of a sender is
// internal: the delivery is tried again.
type DeliveryError struct {
	Reason     string        // may be shown
	Final      bool          // another try makes no sense
	RetryAfter time.Duration // the receiver asks for at least so long; 0 = it does not say
	Unreached  bool          // nobody has answered
}

// Error returns the reason.
func (e *DeliveryError) Error() string { return e.Reason }

// The sizes of a webhook's key that Standard Webhooks allows, in bytes.
const (
	minWebhookKey = 24
	maxWebhookKey = 64
)

// WebhookKey returns the key that a secret of the form whsec_… stands for, as
// Standard Webhooks has it; ErrInvalid for another text. No secret is no key.
func WebhookKey(secret string) ([]byte, error) {
	if secret == "" {
		return nil, nil
	}
	text, ok := strings.CutPrefix(secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(key) < minWebhookKey || len(key) > maxWebhookKey {
		return nil, Errorf(ErrInvalid, "must be whsec_ and the base64 of %d to %d random bytes", minWebhookKey, maxWebhookKey)
	}
	return key, nil
}
