package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/app/core/config"
	"bobbin/tests/must"
)

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
		if byFlag[words[i]] == "" {
			t.Errorf("there is no flag %s", words[i])
		}
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
	if got, want := u["ExecReload"][0], words[0]+" agents reload --data-dir "+cfg.DataDir; got != want {
		t.Errorf("it reloads by %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"DynamicUser": "yes", "ProtectSystem": "strict", "ProtectHome": "yes", "NoNewPrivileges": "yes", "PrivateTmp": "yes", "CapabilityBoundingSet": "",
	} {
		if len(u[name]) != 1 || u[name][0] != want {
			t.Errorf("%s is %v, want %q", name, u[name], want)
		}
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
	if err != nil || strings.Contains(string(out), "bobbin.service") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
