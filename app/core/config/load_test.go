package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
)

// source is where a test's settings come from: files, variables, flags.
type source struct {
	file  string // a file that is named; empty = none
	found string // bobbin.yaml in the working directory, which nobody names
	user  string // bobbin.yaml in the user's configuration directory
	env   map[string]string
	flags map[string]string
}

// load loads from the source, in folders of its own; the working directory is
// shown as "." in origins.
func (s source) load(t *testing.T) (config.Config, config.Origins, error) {
	t.Helper()
	dir, user := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "bobbin.yaml"), s.file+s.found)
	write(t, filepath.Join(user, "bobbin", "bobbin.yaml"), s.user)
	named := ""
	if s.file != "" {
		named = filepath.Join(dir, "bobbin.yaml")
	}
	got, origins, err := config.Load(config.Options{
		File: named, Dir: dir, UserDir: user, Flags: s.flags,
		Env: func(name string) string { return s.env[name] },
	})
	for i := range origins {
		origins[i].From = strings.NewReplacer(dir, ".", user, "~").Replace(origins[i].From)
	}
	if err != nil {
		err = errors.New(strings.NewReplacer(dir, ".", user, "~").Replace(err.Error()))
	}
	return got, origins, err
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if text == "" {
		return
	}
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestLoadNothing(t *testing.T) {
	t.Parallel()
	got, origins := must.Get2(source{}.load(t))(t)
	compare.Equal(t, "settings without any source", config.Default(), got)
	compare.Equal(t, "database.url", "sqlite://bobbin-data/bobbin.db", got.Database.URL.Reveal())
	for _, o := range origins {
		compare.True(t, o.From == "default" && !origins.Set(o.Key), "origin of %s: got %q, want default", o.Key, o.From)
	}
	compare.Error(t, "Default().Validate", nil, config.Default().Validate())
}

// Flag, environment, bobbin.yaml (working directory, then the user's), default.
func TestLoadPrecedence(t *testing.T) {
	t.Parallel()
	full := source{
		found: "default_llm: file\n",
		user:  "default_llm: user\n",
		env:   map[string]string{"BOBBIN_DEFAULT_LLM": "env"},
		flags: map[string]string{"default_llm": "flag"},
	}
	steps := []struct {
		name, want, from string
		without          func(*source)
	}{
		{"flag", "flag", "--default-llm", func(*source) {}},
		{"environment", "env", "BOBBIN_DEFAULT_LLM", func(s *source) { s.flags = nil }},
		{"file", "file", "./bobbin.yaml:1", func(s *source) { s.flags, s.env = nil, nil }},
		{"empty variable is none", "file", "./bobbin.yaml:1", func(s *source) { s.flags, s.env = nil, map[string]string{"BOBBIN_DEFAULT_LLM": ""} }},
		{"user's file", "user", "~/bobbin/bobbin.yaml:1", func(s *source) { s.flags, s.env, s.found = nil, nil, "" }},
		{"default", "", "default", func(s *source) { *s = source{} }},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			s := full
			step.without(&s)
			got, origins := must.Get2(s.load(t))(t)
			compare.Equal(t, "value, origin, its value", []any{step.want, step.from, step.want}, []any{got.DefaultLLM, origins.Of("default_llm").From, origins.Of("default_llm").Value})
		})
	}
}

// Every key can be set by its variable, and by its flag if it has one; dotted keys
// work in the file too.
func TestLoadTexts(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"addr": "localhost:0", "database.url": "postgres://h/x", "data_dir": "d", "replica.name": "one", "nats.cluster_addr": "h:1", "nats.peers": "a:1,b:2", "nats.secret": "0123456789abcdef01234567", "nats.tls_ca": "ca", "nats.tls_cert": "c", "nats.tls_key": "k", "agents_dir": "a", "default_agent": "x", "default_llm": "m",
		"context_usage_threshold": "0.5", "context_summary_model": "s", "context_summary_role": "user", "embedding_model": "openai:e", "models": `[{"name": "one", "provider": "demo"}]`,
		"auth.keys": "alice:a123456789abcdef01234567, bob:b123456789abcdef01234567 ,", "auth.limits": `[{"key": "bob", "usd_per_day": 1}]`,
		"auth.jwt.jwks_url": "http://keys.local/jwks", "auth.jwt.allow_http": "true", "auth.jwt.issuer": "i", "auth.jwt.audience": "a", "auth.jwt.owner_claim": "org", "auth.jwt.user_claim": "email",
		"auth.jwt.scopes": "read", "auth.jwt.scope_claim": "scope", "auth.jwt.leeway": "0s", "auth.jwt.max_life": "2h", "auth.jwt.refresh": "2m",
		"titles": "false", "tools.allow": "mcp,http", "tools.fetch_url.enabled": "true", "tools.fetch_url.ports": "443,8080", "tools.fetch_url.time": "2s", "tools.fetch_url.bytes": "3KiB",
		"limits.tool_shown_bytes": "2KiB", "auth.required": "true", "log.level": "warn", "log.format": "text", "database.durability": "normal",
		"server.cors_origins": "https://chat.example,http://localhost:3000", "server.widget_origins": "https://shop.example,http://localhost:3000", "server.trusted_proxies": "10.0.0.0/8,::1",
		"metrics.open": "true", "metrics.keys": "alice,bob", "telemetry.otlp_endpoint": "https://x:1",
		"files.bytes": "2KiB", "files.per_message": "3", "files.total_bytes": "4KiB", "files.user_bytes": "3KiB", "files.types": "image/png,text/*", "files.native_pdf": "never",
		"limits.message_bytes": "2KiB", "limits.body_bytes": "3KiB", "limits.import_bytes": "6KiB", "limits.import_messages": "77", "limits.user_bytes": "9MiB", "limits.owner_bytes": "1GiB", "limits.request_memory_bytes": "4KiB", "limits.request_disk_bytes": "7KiB", "limits.tool_output_bytes": "4KiB", "limits.queued_runs": "1_000", "limits.runs_per_owner": "12", "limits.runs_per_user": "3", "limits.open_streams_per_user": "4",
		"limits.concurrent_runs": "2", "limits.open_streams": "3", "limits.open_streams_per_owner": "4", "limits.requests_per_second": "0", "limits.user_requests_per_second": "1", "limits.guesses_per_minute": "9",
		"limits.wait_time": "1s", "limits.run_time": "2s", "limits.tool_time": "3s", "limits.approval_time": "7s", "limits.summary_time": "4s", "limits.background_summary_time": "6s", "limits.shutdown_grace": "5s",
		"webhooks.secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "webhooks.allow_private": "true", "webhooks.time": "7s", "webhooks.concurrent": "8",
		"slack.client_id": "1.2", "slack.client_secret": "hush", "slack.token_key": strings.Repeat("a", 43) + "=", "slack.teams": "T1,T2", "slack.signing_secret": "hush", "slack.app_token": "xapp-1-b", "slack.owner": "alice", "slack.agent": "x", "slack.api_url": "http://h/api/", "slack.link_by_email": "true", "slack.members_only": "true", "slack.approvers": "U1,U2",
		"retention.events": "0s", "retention.archived_sessions": "24h",
	}
	env, flags, shown := map[string]string{}, map[string]string{}, map[string]string{}
	var dotted strings.Builder
	for _, key := range config.Keys() {
		value, ok := values[key.Name]
		if !ok {
			compare.True(t, slices.Contains([]string{"nats.url", "auth.jwt.jwks_file", "auth.jwt.owner", "slack.bot_token"}, key.Name), "no test sets %s", key.Name) // not beside others
			continue
		}
		env[key.Env()] = value
		if key.Flag() != "" {
			flags[key.Name] = value
		}
		dotted.WriteString(key.Name + ": '" + value + "'\n")
	}
	for name, s := range map[string]source{"env": {env: env}, "flags": {flags: flags, env: map[string]string{"BOBBIN_AUTH_KEYS": values["auth.keys"], "BOBBIN_MODELS": values["models"], "BOBBIN_AUTH_LIMITS": values["auth.limits"], "BOBBIN_NATS_SECRET": values["nats.secret"], "BOBBIN_WEBHOOKS_SECRET": values["webhooks.secret"],
		"BOBBIN_SLACK_CLIENT_ID": values["slack.client_id"], "BOBBIN_SLACK_TEAMS": values["slack.teams"], "BOBBIN_SLACK_CLIENT_SECRET": values["slack.client_secret"], "BOBBIN_SLACK_TOKEN_KEY": values["slack.token_key"], "BOBBIN_SLACK_SIGNING_SECRET": values["slack.signing_secret"], "BOBBIN_SLACK_APP_TOKEN": values["slack.app_token"]}}, "dotted": {file: dotted.String()}} {
		_, origins, err := s.load(t)
		if err != nil {
			t.Errorf("Load from %s: %v", name, err)
			continue
		}
		for _, o := range origins {
			if want, ok := shown[o.Key]; ok && o.Value != want {
				t.Errorf("%s from %s: got %q, want %q as before", o.Key, name, o.Value, want)
			}
			shown[o.Key] = o.Value
			if _, ok := values[o.Key]; ok != origins.Set(o.Key) {
				t.Errorf("%s from %s: got origin %q", o.Key, name, o.From)
			}
		}
	}
	compare.Equal(t, "auth.keys", "alice:***,bob:***", shown["auth.keys"])
}

func TestLoadDerivedDefaults(t *testing.T) {
	t.Parallel()
	got, origins, err := source{flags: map[string]string{"data_dir": "/srv/b"}}.load(t)
	if err != nil || got.Database.URL.Reveal() != "sqlite:///srv/b/bobbin.db" || origins.Of("database.url").From != "default" {
		t.Errorf("database.url in /srv/b: got %q, origin %+v, error %v", got.Database.URL.Reveal(), origins.Of("database.url"), err)
	}
	for addr, want := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "localhost:1": false, "127.8.8.8:1": false, ":1": true, "0.0.0.0:1": true, "10.0.0.1:1": true, "example.com:1": true} {
		got, _, err := source{flags: map[string]string{"addr": addr}, env: map[string]string{"BOBBIN_AUTH_KEYS": "a:b123456789abcdef01234567"}}.load(t)
		compare.True(t, err == nil && got.Auth.Required == want, "auth.required on %s: got %t (%v), want %t", addr, got.Auth.Required, err, want)
	}
	got, _, err = source{flags: map[string]string{"addr": ":1", "auth.required": "false"}, env: map[string]string{"BOBBIN_AUTH_KEYS": "a:b123456789abcdef01234567"}}.load(t)
	compare.True(t, err == nil && !got.Auth.Required, "auth.required set to false: got %t (%v)", got.Auth.Required, err)
}

func TestLoadFileOption(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "other.yaml")
	write(t, path, "default_llm: other\n")
	for name, opts := range map[string]config.Options{
		"flag":     {File: path, Env: func(string) string { return "" }},
		"variable": {Env: func(name string) string { return map[string]string{config.FileVariable: path}[name] }},
	} {
		got, _, err := config.Load(opts)
		compare.True(t, err == nil && got.DefaultLLM == "other", "by %s: got %q (%v), want other", name, got.DefaultLLM, err)
	}
	_, _, err := config.Load(config.Options{File: path + ".missing", Env: func(string) string { return "" }})
	compare.True(t, errors.Is(err, os.ErrNotExist) && strings.Contains(err.Error(), "other.yaml.missing"), "a file that is not there: got %v, want one that names it", err)
	if _, _, err := config.Load(config.Options{File: t.TempDir(), Env: func(string) string { return "" }}); err == nil {
		t.Error("a folder as file: got no error")
	}
}

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
