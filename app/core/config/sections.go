package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
)

// Metrics is who may read /metrics. They tell what all owners together use, so an
// API key does not suffice by itself. Who calls from this machine without a key may
// read them, unless keys are required.
type Metrics struct {
	Open bool     `key:"open"` // everybody may
	Keys []string `key:"keys"` // names of the API keys that may
}

// Telemetry is where traces go.
type Telemetry struct {
	OTLPEndpoint string `key:"otlp_endpoint"` // base URL of a receiver of OTLP over HTTP; empty = as OpenTelemetry's own variables say
}

// validateMetrics checks that the keys exist, and where traces go.
func (c Config) validateMetrics(found *faults) {
	for _, name := range c.Metrics.Keys {
		known := slices.ContainsFunc(c.Auth.Keys, func(k APIKey) bool { return k.Name == name })
		found.checkKey(known, "metrics.keys", "there is no API key %q; name one of auth.keys", name)
	}
	at := c.Telemetry.OTLPEndpoint
	found.checkKey(at == "" || isAddress(at) && !strings.ContainsAny(at, "?#"), "telemetry.otlp_endpoint", "this is not an address; write for example http://localhost:4318")
}

// Files bound the images and files in messages.
type Files struct {
	Bytes      Bytes    `key:"bytes" range:"1KiB..256MiB"` // of one
	PerMessage int      `key:"per_message" range:"1..100"` // of one message
	TotalBytes Bytes    `key:"total_bytes"`                // of all that one owner has; the same content counts once
	UserBytes  Bytes    `key:"user_bytes" range:"1KiB.."`  // of all that one end user has
	Types      []string `key:"types"`                      // media types such as image/png or text/*
	NativePDF  string   `key:"native_pdf" words:"scanned,always,never"`
}

// officeTypes begins the media types of Word, Excel and PowerPoint.
const officeTypes = "application/vnd.openxmlformats-officedocument."

// mediaType matches a media type, or all of a family.
var mediaType = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/(\*|[a-z0-9][a-z0-9.+-]*)$`)

func (f Files) validate(found *faults) {
	found.checkKey(f.TotalBytes >= f.Bytes, "files.total_bytes", "%s is less than files.bytes (%s): no file of that size could be kept", f.TotalBytes, f.Bytes)
	for _, t := range f.Types {
		found.checkKey(mediaType.MatchString(t), "files.types", "%q is not a media type; write for example image/png or text/*", t)
	}
}

// Retention is how long things are kept that could be removed; 0 = for ever. An hour is longer than
// clients wait before they come back, and than a message waits for its answer.
type Retention struct {
	Events           time.Duration `key:"events" range:"0|1h.."`            // durable events; the newest of each session stays
	ArchivedSessions time.Duration `key:"archived_sessions" range:"0|1h.."` // after they were archived
}

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

// validateSpendLimits checks that each limit is of an owner and limits something. Keys
// in the database have owners that nobody knows here.
func (c Config) validateSpendLimits(found *faults) {
	seen := map[string]int{}
	for i, l := range c.Auth.Limits {
		at := fmt.Sprintf("auth.limits[%d]", i)
		found.checkKey(ValidKeyName(l.Key), at+".key", "%q is not the name of an owner; write the name of a key, or %s for this machine's own user", l.Key, core.LocalOwner)
		if first, twice := seen[l.Key]; twice {
			found.addFault(at+".key", "%q has a limit in auth.limits[%d] already", l.Key, first)
		}
		seen[l.Key] = i
		found.checkKey(l.USDPerDay != 0 || l.TokensPerDay != 0, at, "it limits nothing; set usd_per_day or tokens_per_day")
	}
}

func (t Tools) validate(found *faults) {
	var kinds []string
	for _, kind := range core.ToolKinds() {
		kinds = append(kinds, string(kind))
	}
	for _, kind := range t.Allow {
		oneOf(found, "tools.allow", kind, kinds)
	}
	t.FetchURL.validate(found)
}

func (f FetchURL) validate(found *faults) {
	for _, port := range f.Ports {
		n, err := strconv.Atoi(port)
		found.checkKey(err == nil && n >= 1 && n <= 65535, "tools.fetch_url.ports", "%q is not a port; use 1 to 65535, such as 443", port)
	}
	found.checkKey(len(f.Ports) > 0, "tools.fetch_url.ports", "it is empty; write the ports that may be connected to, such as 80,443")
}
