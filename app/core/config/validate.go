package config

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bobbin/app/core"
)

// Validate returns everything that is wrong with the settings, joined, a *Fault
// each; nil if nothing is.
func (c Config) Validate() error {
	var found faults
	c.validateAddr(&found)
	c.validateStorage(&found)
	c.validateReplicas(&found)
	found.check(isName(c.DefaultAgent), "default_agent", "%q is not an agent's name; use lower-case letters, digits, - and _", c.DefaultAgent)
	found.check(c.ContextUsageThreshold > 0 && c.ContextUsageThreshold <= 1, "context_usage_threshold",
		"%g is not a share of the window; use a number above 0 and at most 1, such as 0.8", c.ContextUsageThreshold)
	validateModels(c.Models, &found)
	c.validateAuth(&found)
	c.Auth.JWT.validate(&found)
	c.Server.validate(&found)
	c.validateSpendLimits(&found)
	c.Tools.FetchURL.validate(&found)
	oneOf(&found, "log.level", c.Log.Level, LogLevels())
	oneOf(&found, "log.format", c.Log.Format, LogFormats())
	c.validateMetrics(&found)
	c.Files.validate(&found)
	c.Webhooks.validate(&found)
	c.Limits.validate(&found)
	c.Retention.validate(&found)
	return errors.Join(found...)
}

func (c Config) validateAddr(found *faults) {
	_, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		found.add("addr", "%q is not host:port; write for example 127.0.0.1:8080", c.Addr)
		return
	}
	n, err := strconv.Atoi(port)
	found.check(err == nil && n >= 0 && n <= 65535, "addr", "%q is not a port; use 0 (any that is free) to 65535", port)
}

func (c Config) validateStorage(found *faults) {
	found.check(strings.TrimSpace(c.DataDir) != "", "data_dir", "it is empty; name a folder, such as ./bobbin-data")
	found.check(strings.TrimSpace(c.AgentsDir) != "", "agents_dir", "it is empty; name a folder, such as agents (it need not exist)")
	scheme, rest, _ := strings.Cut(c.Database.URL.Reveal(), "://")
	switch scheme {
	case "sqlite":
		found.check(rest != "", "database.url", "the path is missing; write for example sqlite://bobbin-data/bobbin.db")
	case "postgres", "postgresql":
		_, err := url.Parse(c.Database.URL.Reveal()) // its error would show the password
		found.check(err == nil, "database.url", "it cannot be read; write for example postgres://user:password@host:5432/name, special characters in the password as %%40")
	default:
		found.add("database.url", "it must begin with sqlite:// or postgres://, such as sqlite://bobbin-data/bobbin.db")
	}
}

// validateModels checks the entries of models, each under its key.
func validateModels(models []Model, found *faults) {
	names := map[string]int{}
	for i, m := range models {
		at := fmt.Sprintf("models[%d].", i)
		if first, twice := names[m.Name]; twice && m.Name != "" {
			found.add(at+"name", "%q is the name of models[%d] too; choose another", m.Name, first)
		}
		names[m.Name] = i
		m.validate(at, found)
	}
}

func (m Model) validate(at string, found *faults) {
	found.check(strings.TrimSpace(m.Name) != "", at+"name", "it is missing; agents call the model by it")
	if m.Provider == "" {
		found.add(at+"provider", "it is missing; use one of %s", strings.Join(Providers(), ", "))
	} else {
		oneOf(found, at+"provider", m.Provider, Providers())
	}
	if m.BaseURL != "" {
		u, err := url.Parse(m.BaseURL)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
		found.check(ok, at+"base_url", "this is not an address; write for example http://localhost:8000/v1")
	}
	found.check(m.APIKeyEnv == "" || isVariable(m.APIKeyEnv), at+"api_key_env",
		"this is not the name of an environment variable; write for example OPENAI_API_KEY, and put the key itself into that variable")
	if m.Encoding != "" {
		oneOf(found, at+"encoding", m.Encoding, Encodings())
	}
	found.check(m.ContextWindow == 0 || m.ContextWindow >= 1024, at+"context_window", "%d tokens hold no conversation; use 1024 or more, or leave it out", m.ContextWindow)
	found.check(m.MaxOutputTokens >= 0 && (m.ContextWindow <= 0 || m.MaxOutputTokens <= m.ContextWindow), at+"max_output_tokens",
		"%d must be between 0 and context_window", m.MaxOutputTokens)
	m.validateThinking(at, found)
	m.validatePrices(at, found)
}

// leastThinking is the smallest budget for thinking that Anthropic takes, in
// tokens; as much is kept for the answer.
const leastThinking = 1024

func (m Model) validateThinking(at string, found *faults) {
	if m.ThinkingBudget == 0 {
		return
	}
	found.check(m.Provider == "anthropic" || m.Provider == "", at+"thinking_budget", "only models of provider anthropic have one; remove it")
	found.check(m.ThinkingBudget >= leastThinking, at+"thinking_budget", "%d tokens are too few; use %d or more, or leave it out", m.ThinkingBudget, leastThinking)
	found.check(m.MaxOutputTokens == 0 || m.ThinkingBudget <= m.MaxOutputTokens-leastThinking, at+"thinking_budget",
		"%d leaves too little of max_output_tokens (%d) for the answer; use %d less than that, at most", m.ThinkingBudget, m.MaxOutputTokens, leastThinking)
}

// validateAuth checks the keys. Whether there are any for a server that other machines
// reach is seen when it starts: keys may be in the database.
func (c Config) validateAuth(found *faults) {
	owners := map[[sha256.Size]byte]string{}
	for i, k := range c.Auth.Keys {
		at := fmt.Sprintf("auth.keys[%d]", i)
		found.check(isKeyName(k.Name), at, "the name %q must be 1 to 64 letters, digits, and . _ @ -", k.Name)
		if k.Secret.Empty() {
			found.add(at, "the secret of %q is missing; write name:secret", k.Name)
			continue
		}
		sum, ok := k.Sum()
		found.check(ok, at, "the hash of %q is not one: sha256: and 64 hexadecimal digits; bobbin keys new makes it", k.Name)
		if owner, twice := owners[sum]; twice && ok {
			found.add(at, "%q has the same secret as %q; every key needs its own", k.Name, owner)
		}
		owners[sum] = k.Name
	}
}

func (l Limits) validate(found *faults) {
	for _, size := range []struct {
		key   string
		value Bytes
	}{
		{"message_bytes", l.MessageBytes}, {"body_bytes", l.BodyBytes}, {"import_bytes", l.ImportBytes}, {"memory_index_bytes", l.MemoryIndexBytes},
	} {
		found.check(size.value >= 1024 && size.value <= 1<<30, "limits."+size.key, "%s is out of range; use 1KiB to 1GiB", size.value)
	}
	l.validateTools(found)
	found.check(l.BodyBytes >= l.MessageBytes, "limits.body_bytes", "%s is less than limits.message_bytes (%s): no message of that size could be sent", l.BodyBytes, l.MessageBytes)
	for _, count := range []struct {
		key   string
		value int
	}{
		{"queued_runs", l.QueuedRuns}, {"runs_per_owner", l.RunsPerOwner}, {"runs_per_user", l.RunsPerUser}, {"import_messages", l.ImportMessages}, {"concurrent_runs", l.ConcurrentRuns},
		{"open_streams", l.OpenStreams}, {"open_streams_per_owner", l.OpenStreamsPerOwner}, {"open_streams_per_user", l.OpenStreamsPerUser},
	} {
		found.check(count.value >= 1, "limits."+count.key, "%d is too few; use 1 or more", count.value)
	}
	found.check(l.RequestsPerSecond >= 0, "limits.requests_per_second", "%d is negative; use 0 (no limit) or more", l.RequestsPerSecond)
	found.check(l.UserRequests >= 0, "limits.user_requests_per_second", "%d is negative; use 0 (no limit) or more", l.UserRequests)
	found.check(l.GuessesPerMinute >= 0, "limits.guesses_per_minute", "%d is negative; use 0 (no limit) or more", l.GuessesPerMinute)
	for _, limit := range []struct {
		key   string
		value time.Duration
	}{
		{"wait_time", l.WaitTime}, {"run_time", l.RunTime}, {"tool_time", l.ToolTime}, {"summary_time", l.SummaryTime},
		{"background_summary_time", l.BackgroundSummaryTime},
	} {
		found.check(limit.value >= 100*time.Millisecond, "limits."+limit.key, "%s is too short; use 100ms or more", limit.value)
	}
	found.check(l.ApprovalTime == 0 || l.ApprovalTime >= time.Second, "limits.approval_time", "%s is too short; use 1s or more, or 0s (no limit)", l.ApprovalTime)
	found.check(l.ShutdownGrace >= 0, "limits.shutdown_grace", "%s is negative; use 0s (stop at once) or more", l.ShutdownGrace)
}

// oneOf notes a fault unless the value is one of the words.
func oneOf(found *faults, key, value string, words []string) {
	if slices.Contains(words, value) {
		return
	}
	if meant := core.Nearest(value, words); meant != "" {
		found.add(key, "%q does not exist; did you mean %s? There are %s", value, meant, strings.Join(words, ", "))
		return
	}
	found.add(key, "%q does not exist; use one of %s", value, strings.Join(words, ", "))
}

// isName reports whether s can be the name of an agent.
func isName(s string) bool { return matches(`[a-z0-9][a-z0-9_-]{0,63}`, s) }

// isKeyName reports whether s can be the name of an API key.
func isKeyName(s string) bool { return matches(`[A-Za-z0-9._@-]{1,64}`, s) }

// isVariable reports whether s can be the name of an environment variable.
func isVariable(s string) bool { return matches(`[A-Za-z_][A-Za-z0-9_]*`, s) }

// matches reports whether all of s fits the pattern.
func matches(pattern, s string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s)
}
