package config

import (
	"time"

	"bobbin/app/core"
)

// Webhooks is how the ends of runs are told to other programs.
type Webhooks struct {
	Secret       Secret        `key:"secret" flag:"-"` // signs where a webhook has none of its own; empty = it is not signed then
	AllowPrivate bool          `key:"allow_private"`   // also http, and addresses that are not public
	Time         time.Duration `key:"time"`            // of one request
	Concurrent   int           `key:"concurrent"`      // requests at once in this process
}

// longestWebhook is less than the lease of a delivery.
const longestWebhook = 50 * time.Second

func (w Webhooks) validate(found *faults) {
	_, err := core.WebhookKey(w.Secret.Reveal())
	found.checkKey(err == nil, "webhooks.secret", "it is not one; make it by: echo whsec_$(openssl rand -base64 32)")
	found.checkKey(w.Time >= 100*time.Millisecond && w.Time <= longestWebhook, "webhooks.time", "%s is out of range; use 100ms to %s", showDuration(w.Time), longestWebhook)
	found.checkKey(w.Concurrent >= 1 && w.Concurrent <= 1000, "webhooks.concurrent", "%d is out of range; use 1 to 1000", w.Concurrent)
}
