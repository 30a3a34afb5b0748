package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// TestSecretIsNeverPrinted: in no way that Go prints values.
func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := config.NewSecret("hush-1")
	c := config.Default()
	c.Auth.Keys = []config.APIKey{{Name: "alice", Secret: secret}}
	c.Database.URL = config.NewSecretURL("postgres://bob:hush-2@db/x?password=hush-3&sslmode=disable&other=hush-4")
	inner := struct{ unexported config.Secret }{secret}

	var out bytes.Buffer
	for _, value := range []any{secret, &secret, c, &c, inner, []config.Secret{secret}, map[string]config.Secret{"k": secret}, fmt.Errorf("wrapped: %v", secret)} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10.3s", "%-5v"} {
			fmt.Fprintf(&out, verb+"\n", value)
		}
		fmt.Fprintln(&out, value)
		text, err := json.Marshal(value)
		must.Do(t, err)
		out.Write(text)
		if text, err = yaml.Marshal(value); err != nil {
			t.Fatalf("yaml: %v", err)
		}
		out.Write(text)
		for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
			slog.New(h).Info("value", "value", value)
		}
	}
	for _, hidden := range []string{"hush", fmt.Sprintf("%x", "hush"), fmt.Sprintf("%X", "hush")} {
		if i := strings.Index(out.String(), hidden); i >= 0 {
			t.Errorf("%q is printed: …%s…", hidden, out.String()[max(0, i-80):min(out.Len(), i+40)])
		}
	}
	compare.Contains(t, "nothing is printed in the place of the secret", "***", out.String())
}

func TestSecret(t *testing.T) {
	t.Parallel()
	if s := config.NewSecret("x"); s.Reveal() != "x" || s.Empty() || s.String() != "***" || !s.Equal(config.NewSecret("x")) || s.Equal(config.NewSecret("y")) {
		t.Errorf("secret x: got %q, empty %t", s.Reveal(), s.Empty())
	}
	var zero config.Secret
	if zero.Reveal() != "" || !zero.Empty() || fmt.Sprint(zero) != "" || !zero.Equal(config.NewSecret("")) {
		t.Errorf("no secret: got %q, empty %t, printed %q", zero.Reveal(), zero.Empty(), zero)
	}
	for url, want := range map[string]string{
		"sqlite://bobbin-data/bobbin.db":                       "sqlite://bobbin-data/bobbin.db",
		"sqlite:///var/lib/a b.db":                             "sqlite:///var/lib/a b.db",
		"postgres://db:5432/x":                                 "postgres://db:5432/x",
		"postgres://bob@db/x?sslmode=require":                  "postgres://bob@db/x?sslmode=require",
		"postgres://bob:hush@db:5432/x?sslmode=require#hush":   "postgres://bob:***@db:5432/x?sslmode=require",
		"postgres://db/x?user=bob&password=hush":               "postgres://db/x?password=***&user=bob",
		"postgres://bob:hush@db/x?sslpassword=hush&sslmode=no": "postgres://bob:***@db/x?sslmode=no&sslpassword=***",
		"host=db password=hush":                                "***",
		"nats://hush@n:4222":                                   "nats://***@n:4222",
		"tls://bob:hush@n:4222":                                "tls://bob:***@n:4222",
		"nats://bob:hush@n:4222,nats://hush@m:4222":            "nats://bob:***@n:4222,nats://***@m:4222",
		"nats://n:4222":                                        "nats://n:4222",
		"postgres://bob:hu%sh@db/x":                            "***",
		"postgres:hush":                                        "***",
		"postgres://db/x?password=hu%sh":                       "***",
	} {
		compare.Equal(t, url+": shown as", want, config.NewSecretURL(url).String())
		compare.Equal(t, "revealed", url, config.NewSecretURL(url).Reveal())
	}
}

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
		compare.Equal(t, name, c.want, c.nats.InTheClear())
	}
}
