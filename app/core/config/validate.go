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
	found.checkKey(strings.TrimSpace(c.DataDir) != "", "data_dir", "it is empty; name a folder, such as ./bobbin-data")
	found.checkKey(strings.TrimSpace(c.AgentsDir) != "", "agents_dir", "it is empty; name a folder, such as agents (it need not exist)")
	oneOf(&found, "database.durability", c.Database.Durability, Durabilities())
	scheme, rest, _ := strings.Cut(c.Database.URL.Reveal(), "://")
	switch scheme {
	case "sqlite":
		found.checkKey(rest != "", "database.url", "the path is missing; write for example sqlite://bobbin-data/bobbin.db")
	case "postgres", "postgresql":
		_, err := url.Parse(c.Database.URL.Reveal()) // its error would show the password
		found.checkKey(err == nil, "database.url", "it cannot be read; write for example postgres://user:password@host:5432/name, special characters in the password as %%40")
	default:
		found.addFault("database.url", "it must begin with sqlite:// or postgres://, such as sqlite://bobbin-data/bobbin.db")
	}
	c.validateReplicas(&found)
	found.checkKey(isName(c.DefaultAgent), "default_agent", "%q is not an agent's name; use lower-case letters, digits, - and _", c.DefaultAgent)
	found.checkKey(slices.Contains([]string{"", "system", "user"}, c.ContextSummaryRole), "context_summary_role", "%q is no role of a summary; use system or user", c.ContextSummaryRole)
	found.checkKey(c.ContextUsageThreshold > 0 && c.ContextUsageThreshold <= 1, "context_usage_threshold",
		"%g is not a share of the window; use a number above 0 and at most 1, such as 0.8", c.ContextUsageThreshold)
	names := map[string]int{}
	for i, m := range c.Models {
		at := fmt.Sprintf("models[%d].", i)
		if first, twice := names[m.Name]; twice && m.Name != "" {
			found.addFault(at+"name", "%q is the name of models[%d] too; choose another", m.Name, first)
		}
		names[m.Name] = i
		m.validate(at, &found)
	}
	// Whether there are keys for a server that other machines reach is seen when it starts: keys may be
	// in the database.
	owners := map[[sha256.Size]byte]string{}
	for i, k := range c.Auth.Keys {
		at := fmt.Sprintf("auth.keys[%d]", i)
		found.checkKey(ValidKeyName(k.Name), at, "the name %q must be 1 to 64 letters, digits, and . _ @ -", k.Name)
		if k.Secret.Empty() {
			found.addFault(at, "the secret of %q is missing; write name:secret", k.Name)
			continue
		}
		sum, ok := k.Sum()
		found.checkKey(ok, at, "the hash of %q is not one: sha256: and 64 hexadecimal digits; bobbin keys new makes it", k.Name)
		if owner, twice := owners[sum]; twice && ok {
			found.addFault(at, "%q has the same secret as %q; every key needs its own", k.Name, owner)
		}
		owners[sum] = k.Name
		if weakness := k.Secret.weakness(); weakness != "" && !k.Hashed() {
			found.addFault(at, "the secret of %q %s: make one with: bobbin keys new %s", k.Name, weakness, k.Name)
		}
	}
	c.Auth.JWT.validate(&found)
	c.Server.validate(c.Auth.Required, &found)
	c.validateSpendLimits(&found)
	c.Tools.validate(&found)
	oneOf(&found, "log.level", c.Log.Level, LogLevels())
	oneOf(&found, "log.format", c.Log.Format, LogFormats())
	c.validateMetrics(&found)
	c.Files.validate(&found)
	c.Webhooks.validate(&found)
	c.Slack.validate(&found)
	c.Limits.validate(&found)
	c.Retention.validate(&found)
	return errors.Join(found...)
}

func (c Config) validateAddr(found *faults) {
	_, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		found.addFault("addr", "%q is not host:port; write for example 127.0.0.1:8080", c.Addr)
		return
	}
	n, err := strconv.Atoi(port)
	found.checkKey(err == nil && n >= 0 && n <= 65535, "addr", "%q is not a port; use 0 (any that is free) to 65535", port)
}

func (m Model) validate(at string, found *faults) {
	found.checkKey(strings.TrimSpace(m.Name) != "", at+"name", "it is missing; agents call the model by it")
	if m.Provider == "" {
		found.addFault(at+"provider", "it is missing; use one of %s", strings.Join(Providers(), ", "))
	} else {
		oneOf(found, at+"provider", m.Provider, Providers())
	}
	if m.BaseURL != "" {
		u, err := url.Parse(m.BaseURL)
		ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
		found.checkKey(ok, at+"base_url", "this is not an address; write for example http://localhost:8000/v1")
	}
	found.checkKey(m.APIKeyEnv == "" || isVariable(m.APIKeyEnv), at+"api_key_env",
		"this is not the name of an environment variable; write for example OPENAI_API_KEY, and put the key itself into that variable")
	found.checkKey(m.Provider != "langchain/ollama" || m.Documents == nil || !*m.Documents, at+"documents", "models of provider %s take no PDFs; remove it", m.Provider)
	if m.Encoding != "" {
		oneOf(found, at+"encoding", m.Encoding, Encodings())
	}
	if m.PrefixContract != "" {
		oneOf(found, at+"prefix_contract", m.PrefixContract, PrefixContracts())
	}
	isOpenAI := m.Provider == "openai" || m.Provider == ""
	if m.API != "" {
		oneOf(found, at+"api", m.API, ModelAPIs())
		found.checkKey(isOpenAI, at+"api", "only models of provider openai have one; remove it")
	}
	if m.MaxTokensField != "" {
		oneOf(found, at+"max_tokens_field", m.MaxTokensField, MaxTokensFields())
		found.checkKey(isOpenAI && m.API != APIResponses, at+"max_tokens_field", "only models of provider openai with api chat have one; remove it")
	}
	found.checkKey(!m.OpensThought || isOpenAI && m.API != APIResponses, at+"prompt_opens_thought", "only models of provider openai with api chat have one; remove it")
	found.checkKey(m.ContextWindow == 0 || m.ContextWindow >= 1024, at+"context_window", "%d tokens hold no conversation; use 1024 or more, or leave it out", m.ContextWindow)
	found.checkKey(m.MaxOutputTokens >= 0 && (m.ContextWindow <= 0 || m.MaxOutputTokens <= m.ContextWindow), at+"max_output_tokens",
		"%d must be between 0 and context_window", m.MaxOutputTokens)
	for key, limit := range map[string]time.Duration{"first_byte_time": m.FirstByteTime, "idle_time": m.IdleTime} {
		found.checkKey(limit == 0 || limit >= time.Second, at+key, "%s is too short; use 1s or more, or leave it out", showDuration(limit))
	}
	found.checkKey(m.Slots >= 0, at+"slots", "%d must be 1 or more; or leave it out", m.Slots)
	found.checkKey(m.Region == "" || m.Provider == "bedrock" || m.Provider == "vertex", at+"region", "only models of providers bedrock and vertex have one; remove it")
	found.checkKey(m.Project == "" || m.Provider == "vertex", at+"project", "only models of provider vertex have one; remove it")
	if m.ThinkingBudget != 0 {
		found.checkKey(m.isClaude() || m.Provider == "", at+"thinking_budget", "only models of providers anthropic, bedrock and vertex have one; remove it")
		found.checkKey(m.ThinkingBudget >= leastThinking, at+"thinking_budget", "%d tokens are too few; use %d or more, or leave it out", m.ThinkingBudget, leastThinking)
		found.checkKey(m.MaxOutputTokens == 0 || m.ThinkingBudget <= m.MaxOutputTokens-leastThinking, at+"thinking_budget",
			"%d leaves too little of max_output_tokens (%d) for the answer; use %d less than that, at most", m.ThinkingBudget, m.MaxOutputTokens, leastThinking)
	}
	m.validatePrices(at, found)
}

// isClaude reports whether the provider serves Claude over Anthropic's own API.
func (m Model) isClaude() bool {
	return slices.Contains([]string{"anthropic", "bedrock", "vertex"}, m.Provider)
}

// leastThinking is the smallest budget for thinking that Anthropic takes, in
// tokens; as much is kept for the answer.
const leastThinking = 1024

func (l Limits) validate(found *faults) {
	for _, size := range []struct {
		key   string
		value Bytes
	}{
		{"message_bytes", l.MessageBytes}, {"body_bytes", l.BodyBytes}, {"import_bytes", l.ImportBytes},
	} {
		found.checkKey(size.value >= 1024 && size.value <= 1<<30, "limits."+size.key, "%s is out of range; use 1KiB to 1GiB", size.value)
	}
	found.checkKey(l.UserBytes == 0 || l.UserBytes >= 1<<20, "limits.user_bytes", "%s is out of range; use 1MiB or more, or 0 for no limit", l.UserBytes)
	found.checkKey(l.OwnerBytes == 0 || l.OwnerBytes >= 1<<20, "limits.owner_bytes", "%s is out of range; use 1MiB or more, or 0 for no limit", l.OwnerBytes)
	found.checkKey(l.RequestMemoryBytes == 0 || l.RequestMemoryBytes >= l.BodyBytes, "limits.request_memory_bytes", "%s is less than limits.body_bytes (%s); use more, or 0 for what suits the machine", l.RequestMemoryBytes, l.BodyBytes)
	found.checkKey(l.RequestDiskBytes >= l.ImportBytes, "limits.request_disk_bytes", "%s is less than limits.import_bytes (%s): no history of that size could come in", l.RequestDiskBytes, l.ImportBytes)
	found.checkKey(l.ToolOutputBytes >= 1024 && l.ToolOutputBytes <= core.MaxToolResult, "limits.tool_output_bytes", "%s is out of range; use 1KiB to 8MiB", l.ToolOutputBytes)
	found.checkKey(l.ToolShownBytes >= 1024 && l.ToolShownBytes <= core.MaxToolResult, "limits.tool_shown_bytes", "%s is out of range; use 1KiB to 8MiB", l.ToolShownBytes)
	found.checkKey(l.BodyBytes >= l.MessageBytes, "limits.body_bytes", "%s is less than limits.message_bytes (%s): no message of that size could be sent", l.BodyBytes, l.MessageBytes)
	for _, count := range []struct {
		key   string
		value int
	}{
		{"queued_runs", l.QueuedRuns}, {"runs_per_owner", l.RunsPerOwner}, {"runs_per_user", l.RunsPerUser}, {"import_messages", l.ImportMessages},
		{"open_streams", l.OpenStreams}, {"open_streams_per_owner", l.OpenStreamsPerOwner}, {"open_streams_per_user", l.OpenStreamsPerUser},
	} {
		found.checkKey(count.value >= 1, "limits."+count.key, "%d is too few; use 1 or more", count.value)
	}
	found.checkKey(l.ConcurrentRuns >= 0, "limits.concurrent_runs", "%d is negative; use 1 or more, or 0 for what suits the machine", l.ConcurrentRuns)
	found.checkKey(l.RequestsPerSecond >= 0, "limits.requests_per_second", "%d is negative; use 0 (no limit) or more", l.RequestsPerSecond)
	found.checkKey(l.UserRequests >= 0, "limits.user_requests_per_second", "%d is negative; use 0 (no limit) or more", l.UserRequests)
	found.checkKey(l.GuessesPerMinute >= 0, "limits.guesses_per_minute", "%d is negative; use 0 (no limit) or more", l.GuessesPerMinute)
	for _, limit := range []struct {
		key   string
		value time.Duration
	}{
		{"wait_time", l.WaitTime}, {"run_time", l.RunTime}, {"tool_time", l.ToolTime}, {"summary_time", l.SummaryTime},
		{"background_summary_time", l.BackgroundSummaryTime},
	} {
		found.checkKey(limit.value >= 100*time.Millisecond, "limits."+limit.key, "%s is too short; use 100ms or more", limit.value)
	}
	found.checkKey(l.ApprovalTime == 0 || l.ApprovalTime >= time.Second, "limits.approval_time", "%s is too short; use 1s or more, or 0s (no limit)", l.ApprovalTime)
	found.checkKey(l.ShutdownGrace >= 0, "limits.shutdown_grace", "%s is negative; use 0s (stop at once) or more", l.ShutdownGrace)
}

// oneOf notes a fault unless the value is one of the words.
func oneOf(found *faults, key, value string, words []string) {
	if slices.Contains(words, value) {
		return
	}
	if meant := core.Nearest(value, words); meant != "" {
		found.addFault(key, "%q does not exist; did you mean %s? There are %s", value, meant, strings.Join(words, ", "))
		return
	}
	found.addFault(key, "%q does not exist; use one of %s", value, strings.Join(words, ", "))
}

// isName reports whether s can be the name of an agent.
func isName(s string) bool { return matchesWhole(`[a-z0-9][a-z0-9_-]{0,63}`, s) }

// ValidKeyName reports whether s can be the name of an API key: 1 to 64 letters, digits, and . _ @ -.
func ValidKeyName(s string) bool { return matchesWhole(`[A-Za-z0-9._@-]{1,64}`, s) }

// isVariable reports whether s can be the name of an environment variable.
func isVariable(s string) bool { return matchesWhole(`[A-Za-z_][A-Za-z0-9_]*`, s) }

// matchesWhole reports whether all of s fits the pattern.
func matchesWhole(pattern, s string) bool {
	return regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(s)
}
