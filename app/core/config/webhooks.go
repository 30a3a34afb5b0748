package config

import (
	"time"

	"bobbin/app/core"
)

// Webhooks is how the ends of runs are told to other programs.
type Webhooks struct {
	Secret       Secret        // signs where a webhook has none of its own; empty = it is not signed then
	AllowPrivate bool          // also http, and addresses that are not public
	Time         time.Duration // of one request
	Concurrent   int           // requests at once in this process
}

// longestWebhook is less than the lease of a delivery.
const longestWebhook = 50 * time.Second

func defaultWebhooks() Webhooks { return Webhooks{Time: 15 * time.Second, Concurrent: 16} }

func webhookKeys() []setting {
	return []setting{
		{name: "webhooks.secret", flagless: true, meaning: "signs webhooks that have no secret of their own: `whsec_` and the base64 of 24 to 64 random bytes; empty: those are not signed", field: func(c *Config) any { return &c.Webhooks.Secret }},
		{name: "webhooks.allow_private", meaning: "allow webhooks to private addresses, and by `http`: for intranets and tests", field: func(c *Config) any { return &c.Webhooks.AllowPrivate }},
		{name: "webhooks.time", meaning: "time limit of one webhook request", field: func(c *Config) any { return &c.Webhooks.Time }},
		{name: "webhooks.concurrent", meaning: "concurrent webhook requests of this process", field: func(c *Config) any { return &c.Webhooks.Concurrent }},
	}
}

func (w Webhooks) validate(found *faults) {
	_, err := core.WebhookKey(w.Secret.Reveal())
	found.checkKey(err == nil, "webhooks.secret", "it is not one; make it by: echo whsec_$(openssl rand -base64 32)")
	found.checkKey(w.Time >= 100*time.Millisecond && w.Time <= longestWebhook, "webhooks.time", "%s is out of range; use 100ms to %s", showDuration(w.Time), longestWebhook)
	found.checkKey(w.Concurrent >= 1 && w.Concurrent <= 1000, "webhooks.concurrent", "%d is out of range; use 1 to 1000", w.Concurrent)
}
