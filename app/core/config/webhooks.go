package config

import (
	"time"

	"bobbin/app/core"
)

// Webhooks is how the ends of runs are told to other programs.
type Webhooks struct {
	Secret       Secret        `key:"secret" flag:"-"`            // signs where a webhook has none of its own; empty = it is not signed then
	AllowPrivate bool          `key:"allow_private"`              // also http, and addresses that are not public
	Time         time.Duration `key:"time" range:"100ms..50s"`    // of one request; less than the lease of a delivery
	Concurrent   int           `key:"concurrent" range:"1..1000"` // requests at once in this process
}

func (w Webhooks) validate(found *faults) {
	_, err := core.WebhookKey(w.Secret.Reveal())
	found.checkKey(err == nil, "webhooks.secret", "it is not one; make it by: echo whsec_$(openssl rand -base64 32)")
}
