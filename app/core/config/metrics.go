package config

import "slices"

// Metrics is who may read /metrics. They tell what all owners together use, so an
// API key does not suffice by itself. Who calls from this machine without a key may
// read them, unless keys are required.
type Metrics struct {
	Open bool     // everybody may
	Keys []string // names of the API keys that may
}

func metrics() []setting {
	return []setting{
		{name: "metrics.open", meaning: "let everybody who can reach the address read `/metrics`, without a key", field: func(c *Config) any { return &c.Metrics.Open }},
		{name: "metrics.keys", meaning: "names of the API keys of `auth.keys` that may read `/metrics`; it is also open to this machine without a key, unless keys are required", field: func(c *Config) any { return &c.Metrics.Keys }},
	}
}

// validateMetrics checks that the keys exist.
func (c Config) validateMetrics(found *faults) {
	for _, name := range c.Metrics.Keys {
		known := slices.ContainsFunc(c.Auth.Keys, func(k APIKey) bool { return k.Name == name })
		found.check(known, "metrics.keys", "there is no API key %q; name one of auth.keys", name)
	}
}
