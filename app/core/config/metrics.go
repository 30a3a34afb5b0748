package config

import (
	"slices"
	"strings"
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
