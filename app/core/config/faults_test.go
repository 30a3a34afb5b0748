package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// TestLoadFaults: every fault names its place, its key, what is wrong, and what to
// do; no fault holds a secret.
func TestLoadFaults(t *testing.T) {
	t.Parallel()
	golden.Cases(t, "testdata/faults.txt", func(name, input string) string {
		s := source{env: map[string]string{}, flags: map[string]string{}}
		for line := range strings.Lines(input) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			switch {
			case strings.HasPrefix(key, "BOBBIN_"):
				s.env[key] = value
			case strings.HasPrefix(key, "--") && value != "":
				s.flags[key[2:]] = value
			default:
				s.file += line
			}
		}
		_, _, err := s.load(t)
		must.True(t, err != nil && !strings.Contains(err.Error(), "hush"), "%s: got %v, want faults without a secret", name, err)
		return err.Error()
	})
}

// A text that is short, or that stands in a file to be replaced, keeps nobody out; a
// hash is taken as it is.
func TestWeakSecretsAreRefused(t *testing.T) {
	t.Parallel()
	const strong = "PV3bLDUUqGwXgW4iSb0Uj2mh"
	for secret, why := range map[string]string{
		"a":                                "has 1 characters, and 24 are the least",
		"change-me":                        "is a placeholder (change-me)",
		"Change-Me-Change-Me-Change-Me":    "is a placeholder (change-me)",
		"my-long-and-not-so-good-password": "is a placeholder (password)",
		"a-secret-of-more-than-24-letters": "is a placeholder (secret)",
		strong[1:]:                         "has 23 characters, and 24 are the least",
	} {
		_, _, err := source{env: map[string]string{
			"BOBBIN_AUTH_KEYS": "web:" + secret, "BOBBIN_DATABASE_URL": "postgres://h/x", "BOBBIN_NATS_CLUSTER_ADDR": "h:1", "BOBBIN_NATS_SECRET": secret,
		}}.load(t)
		want := "BOBBIN_NATS_SECRET: nats.secret: it keeps others out of the cluster and " + why + ": make one with: openssl rand -hex 32\n" +
			`BOBBIN_AUTH_KEYS: auth.keys[0]: the secret of "web" ` + why + ": make one with: bobbin keys new web"
		compare.True(t, err != nil && err.Error() == want, "%s: got %v, want %s", secret, err, want)
	}
	for _, setting := range []string{"web:" + strong, "web:sha256:" + strings.Repeat("0a", 32)} {
		if _, _, err := (source{env: map[string]string{"BOBBIN_AUTH_KEYS": setting}}).load(t); err != nil {
			t.Errorf("%s: got %v, want none", setting, err)
		}
	}
}

// Faults of all sources come at once, each a *Fault.
func TestLoadAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	_, _, err := config.Load(config.Options{
		Dir: t.TempDir(), UserDir: t.TempDir(),
		Env:   func(name string) string { return map[string]string{"BOBBIN_LOG_LEVEL": "x", "BOBBIN_ADDR": "y"}[name] },
		Flags: map[string]string{"limits.run_time": "z"},
	})
	joined, ok := err.(interface{ Unwrap() []error })
	must.True(t, ok && len(joined.Unwrap()) == 3, "Load: got %v, want three joined errors", err)
	for _, e := range joined.Unwrap() {
		var fault *config.Fault
		compare.True(t, errors.As(e, &fault) && fault.Where != "" && fault.Key != "" && fault.Problem != "", "got %#v, want a Fault with all its fields", e)
	}
}

// A key without a value is as if it were not there.
func TestLoadEmptyValues(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"# nothing\n", "addr:\nlimits:\nlog: ~\n", "null\n", "---\n"} {
		got, _, err := source{file: file}.load(t)
		if err != nil {
			t.Errorf("file %q: %v", file, err)
			continue
		}
		diff := cmp.Diff(config.Default(), got)
		compare.True(t, diff == "", "file %q (-default +got):\n%s", file, diff)
	}
}

// Anchors and aliases work.
func TestLoadAliases(t *testing.T) {
	t.Parallel()
	got, _, err := source{file: "default_llm: &m fast\ncontext_summary_model: *m\nlimits: {run_time: &t 7s, tool_time: *t}\n"}.load(t)
	compare.True(t, err == nil && got.ContextSummaryModel == "fast" && got.Limits.ToolTime == got.Limits.RunTime, "got %q and %s (%v), want fast and 7s", got.ContextSummaryModel, got.Limits.ToolTime, err)
}
