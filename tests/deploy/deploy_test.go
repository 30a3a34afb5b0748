package deploy_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// afterGrace is what a stop may take besides the grace period: runs that are handed back
// have 10 s to return, and requests 5 s to be answered.
const afterGrace = 20 * time.Second

// read returns a file of deploy/.
func read(t *testing.T, name string) string {
	t.Helper()
	raw := must.Get(os.ReadFile(filepath.Join("../../deploy", name)))(t)
	return string(raw)
}

// documents decodes the YAML documents of a file. A field that T does not have is no
// fault: these files have more than the tests look at.
func documents[T any](t *testing.T, name string) []T {
	t.Helper()
	return decode[T](t, name, read(t, name))
}

// decode is documents for a text.
func decode[T any](t *testing.T, name, text string) []T {
	t.Helper()
	var all []T
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		must.True(t, err == nil, "%s: %v", name, err)
		all = append(all, one)
	}
}

// interpolation is what compose puts in the place of ${NAME}, ${NAME:?…} and ${NAME:-…}.
var interpolation = regexp.MustCompile(`\$\{([A-Z_]+)(:[?-][^}]*)?\}`)

// strongText is a secret as an operator makes one.
const strongText = "0123456789abcdef0123456789abcdef"

// operatorValue is what an operator sets a variable to that the file leaves open.
func operatorValue(name string) string {
	switch name {
	case "BOBBIN_AUTH_KEYS":
		return "web:" + strongText
	case "BOBBIN_DATABASE_URL":
		return "postgres://bobbin:" + strongText + "@db.example/bobbin?sslmode=verify-full"
	default:
		return strongText
	}
}

// loaded returns the configuration that the program makes of the environment and flags,
// and fails the test for a variable that it does not know.
func loaded(t *testing.T, where string, env, flags map[string]string) config.Config {
	t.Helper()
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Env()] = true
	}
	for _, name := range []string{ // the providers' own
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY",
		"AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_CLOUD_PROJECT",
	} {
		known[name] = true
	}
	for name := range env {
		compare.True(t, known[name], "%s: %s sets nothing", where, name)
	}
	cfg, err := load(t, env, flags)
	compare.Error(t, where+": the program would not start", nil, err)
	return cfg
}

// load loads the settings as the program does.
func load(t *testing.T, env, flags map[string]string) (config.Config, error) {
	t.Helper()
	cfg, _, err := config.Load(config.Options{
		Dir: t.TempDir(), UserDir: t.TempDir(), Flags: flags,
		Env: func(name string) string { // with what an operator sets
			return interpolation.ReplaceAllStringFunc(env[name], func(s string) string { return operatorValue(interpolation.FindStringSubmatch(s)[1]) })
		},
	})
	return cfg, err
}

// enough fails the test if the process is killed before it has stopped.
func enough(t *testing.T, where string, has, grace time.Duration) {
	t.Helper()
	if want := grace + afterGrace; has <= 0 || has < want {
		t.Errorf("%s: killed after %s, want %s or more: the grace period and %s", where, has, want, afterGrace)
	}
}

// lines returns the lines that are neither empty nor comments.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}

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
		compare.Equal(t, name+": agents and tools of the host", []string{"${BOBBIN_AGENTS:-./agents}:" + cfg.AgentsDir + ":ro", "${BOBBIN_TOOLS:-./tools}:/tools:ro"}, s.Volumes[1:])
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
	compare.True(t, len(names) == 3 && len(databases) == 1, "got the replicas %v on %d databases, want three on one", names, len(databases))
	proxy(t, names)
}

// TestComposeTrustsItsProxy: the replicas count wrong keys by the address that the proxy
// saw, and believe nobody but the proxy.
func TestComposeTrustsItsProxy(t *testing.T) {
	t.Parallel()
	c := documents[compose](t, "docker-compose.yaml")[0]
	address := c.Services["proxy"].Networks["default"].Address
	_, subnet, err := net.ParseCIDR(c.Networks["default"].IPAM.Config[0].Subnet)
	compare.True(t, err == nil && subnet.Contains(net.ParseIP(address)), "the proxy has %q, which is not in %s (%v)", address, subnet, err)
	cfg := loaded(t, "bobbin-1", c.Services["bobbin-1"].Environment, nil)
	compare.Equal(t, "trusted", []string{address}, cfg.Server.TrustedProxies)
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

// unit returns the settings of bobbin.service, with all their values.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, line := range lines(read(t, "bobbin.service")) {
		if name, value, ok := strings.Cut(line, "="); ok {
			all[name] = append(all[name], value)
		}
	}
	return all
}

// TestSystemd: the flags and variables exist, what it writes is where it may write, and it
// has the time to stop.
func TestSystemd(t *testing.T) {
	t.Parallel()
	u := unit(t)
	env, flags := map[string]string{}, map[string]string{}
	for _, pair := range u["Environment"] {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	byFlag := map[string]string{}
	for _, k := range config.Keys() {
		byFlag["--"+k.Flag()] = k.Name
	}
	words := strings.Fields(u["ExecStart"][0])
	if words[0] != "/usr/local/bin/bobbin" || words[1] != "serve" {
		t.Errorf("it starts %v", words[:2])
	}
	for i := 2; i+1 < len(words); i += 2 {
		compare.True(t, byFlag[words[i]] != "", "there is no flag %s", words[i])
		flags[byFlag[words[i]]] = words[i+1]
	}
	cfg := loaded(t, "bobbin.service", env, flags)
	seconds := must.Get(strconv.Atoi(u["TimeoutStopSec"][0]))(t)
	enough(t, "bobbin.service", time.Duration(seconds)*time.Second, cfg.Limits.ShutdownGrace)
	if cfg.DataDir != "/var/lib/"+u["StateDirectory"][0] || !strings.HasPrefix(strings.TrimPrefix(cfg.Database.URL.Reveal(), "sqlite://"), cfg.DataDir) || !cfg.Loopback() {
		t.Errorf("data in %s, database %s, address %s", cfg.DataDir, cfg.Database.URL, cfg.Addr)
	}
	how := "-p User=" + u["User"][0] + " -p DynamicUser=yes -p StateDirectory=" + u["StateDirectory"][0]
	if text := read(t, "bobbin.service"); !strings.Contains(text, how) || strings.Contains(text, "as root:") {
		t.Errorf("the file does not say how to use the command line as the unit's user (%s)", how)
	}
	compare.Equal(t, "it reloads by", words[0]+" agents reload --data-dir "+cfg.DataDir, u["ExecReload"][0])
	for name, want := range map[string]string{
		"DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "NoNewPrivileges": "yes", "PrivateTmp": "yes", "CapabilityBoundingSet": "",
	} {
		compare.True(t, len(u[name]) == 1 && u[name][0] == want, "%s is %v, want %q", name, u[name], want)
	}
}

// TestSystemdVerifies: systemd itself takes the file, where it is installed.
func TestSystemdVerifies(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: it comes with systemd")
	}
	self := must.Get(os.Executable())(t)
	file := filepath.Join(t.TempDir(), "bobbin.service")
	// It looks whether the program is there.
	text := strings.ReplaceAll(read(t, "bobbin.service"), "/usr/local/bin/bobbin", self)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), program, "verify", "--man=no", file).CombinedOutput()
	compare.True(t, err == nil && !strings.Contains(string(out), "bobbin.service"), "systemd-analyze verify: %v\n%s", err, out)
}
