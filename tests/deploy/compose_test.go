package deploy_test

import (
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/tests/compare"
)

// compose is what of docker-compose.yaml is looked at.
type compose struct {
	Services map[string]struct {
		Environment map[string]string
		Grace       time.Duration `yaml:"stop_grace_period"`
		Volumes     []string
		ReadOnly    bool `yaml:"read_only"`
		Image       string
		Build       struct{ Context, Dockerfile string }
		Networks    map[string]struct {
			Address string `yaml:"ipv4_address"`
		}
	}
	Volumes  map[string]any
	Networks map[string]struct {
		IPAM struct {
			Config []struct{ Subnet string }
		}
	}
}

// image returns the variables that the image sets.
func image(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for _, line := range lines(read(t, "Dockerfile")) {
		if rest, ok := strings.CutPrefix(line, "ENV "); ok {
			for pair := range strings.FieldsSeq(rest) {
				name, value, _ := strings.Cut(pair, "=")
				env[name] = value
			}
		}
	}
	return env
}

// TestCompose: three replicas with settings that go together, each with a name and a
// folder of its own, on one database.
func TestCompose(t *testing.T) {
	t.Parallel()
	c := documents[compose](t, "docker-compose.yaml")[0]
	names, folders, databases := []string{}, map[string]bool{}, map[string]bool{}
	for name, s := range c.Services {
		if !strings.HasPrefix(name, "bobbin-") {
			continue
		}
		env := image(t)
		maps.Copy(env, s.Environment)
		cfg := loaded(t, name, env, nil)
		enough(t, name, s.Grace, cfg.Limits.ShutdownGrace)
		names = append(names, name)
		databases[cfg.Database.URL.Reveal()] = true
		if cfg.Replica.Name != name || !slices.Contains(cfg.NATS.Peers, name+":6222") || cfg.NATS.ClusterAddr != "0.0.0.0:6222" {
			t.Errorf("%s: the others do not reach it: it is %q, and looks for %v", name, cfg.Replica.Name, cfg.NATS.Peers)
		}
		volume, path, _ := strings.Cut(s.Volumes[0], ":")
		if _, ok := c.Volumes[volume]; !ok || folders[volume] || path != cfg.DataDir {
			t.Errorf("%s: its data is in %v, want a volume of its own at %s", name, s.Volumes, cfg.DataDir)
		}
		folders[volume] = true
		if !slices.Equal(s.Volumes[1:], []string{"${BOBBIN_AGENTS:-./agents}:" + cfg.AgentsDir + ":ro", "${BOBBIN_TOOLS:-./tools}:/tools:ro"}) {
			t.Errorf("%s: got the volumes %v, want agents and tools of the host", name, s.Volumes)
		}
		for _, variable := range []string{"BOBBIN_TOOLS_ALLOW", "BOBBIN_SLACK_BOT_TOKEN", "BOBBIN_SLACK_SIGNING_SECRET", "BOBBIN_SLACK_APP_TOKEN"} {
			if _, ok := s.Environment[variable]; !ok {
				t.Errorf("%s: it does not get %s of the host", name, variable)
			}
		}
		if !s.ReadOnly || s.Image != "bobbin" || (s.Build.Context == "..") != (name == "bobbin-1") {
			t.Errorf("%s: image %s, build %+v, read only %v; want one that is built once", name, s.Image, s.Build, s.ReadOnly)
		}
	}
	if _, err := os.Stat("../../" + c.Services["bobbin-1"].Build.Dockerfile); err != nil {
		t.Error(err)
	}
	if len(names) != 3 || len(databases) != 1 {
		t.Errorf("got the replicas %v on %d databases, want three on one", names, len(databases))
	}
	proxy(t, names)
}

// TestComposeTrustsItsProxy: the replicas count wrong keys by the address that the proxy
// saw, and believe nobody but the proxy.
func TestComposeTrustsItsProxy(t *testing.T) {
	t.Parallel()
	c := documents[compose](t, "docker-compose.yaml")[0]
	address := c.Services["proxy"].Networks["default"].Address
	_, subnet, err := net.ParseCIDR(c.Networks["default"].IPAM.Config[0].Subnet)
	if err != nil || !subnet.Contains(net.ParseIP(address)) {
		t.Errorf("the proxy has %q, which is not in %s (%v)", address, subnet, err)
	}
	cfg := loaded(t, "bobbin-1", c.Services["bobbin-1"].Environment, nil)
	if !slices.Equal(cfg.Server.TrustedProxies, []string{address}) {
		t.Errorf("trusted are %v, want %s", cfg.Server.TrustedProxies, address)
	}
}

// proxy checks that the proxy has all replicas, and does not hold streams back.
func proxy(t *testing.T, replicas []string) {
	t.Helper()
	text := strings.Join(lines(read(t, "Caddyfile")), "\n")
	for _, want := range []string{"flush_interval -1", "health_uri /readyz"} {
		compare.Contains(t, fmt.Sprintf("the Caddyfile lacks %q", want), want, text)
	}
	for _, name := range replicas {
		compare.Contains(t, fmt.Sprintf("the proxy does not know %s", name), name+":8080", text)
	}
	compare.Equal(t, "the Caddyfile is not whole", strings.Count(text, "}"), strings.Count(text, "{"))
}
