package config_test

import (
	"testing"

	"bobbin/app/core/config"
)

// What replicas tell each other is encrypted, stays on this machine, or the start warns.
func TestNATSInTheClear(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nats config.NATS
		want bool
	}{
		"none":                    {config.NATS{}, false},
		"own cluster":             {config.NATS{ClusterAddr: "0.0.0.0:6222"}, true},
		"own cluster, loopback":   {config.NATS{ClusterAddr: "127.0.0.1:6222"}, false},
		"own cluster, encrypted":  {config.NATS{ClusterAddr: "0.0.0.0:6222", TLSCA: "ca", TLSCert: "c", TLSKey: "k"}, false},
		"a URL":                   {config.NATS{URL: config.NewSecretURL("nats://u:p@nats.example:4222")}, true},
		"a URL, encrypted":        {config.NATS{URL: config.NewSecretURL("tls://nats.example:4222")}, false},
		"a URL with an authority": {config.NATS{URL: config.NewSecretURL("nats://nats.example:4222"), TLSCA: "ca"}, false},
		"a URL, loopback":         {config.NATS{URL: config.NewSecretURL("nats://localhost:4222")}, false},
		"one of two":              {config.NATS{URL: config.NewSecretURL("tls://a.example, ws://b.example")}, true},
	} {
		if got := c.nats.InTheClear(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
