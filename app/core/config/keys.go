package config

import (
	"slices"
	"strings"
)

// Key is something that can be set.
type Key struct {
	Name    string // as in bobbin.yaml, with dots: limits.run_time
	Default string // as config show prints it
	Meaning string // a sentence, in Markdown
	Open    bool   // a bobbin.yaml that nobody named may set it, within bounds

	flagless bool
}

// Env returns the environment variable that sets the key.
func (k Key) Env() string {
	return "BOBBIN_" + strings.ToUpper(strings.ReplaceAll(k.Name, ".", "_"))
}

// Flag returns the command line flag that sets the key, without the dashes; empty
// for keys that have none: API keys, as other users of the machine can read a
// command line, and what is too long for one.
func (k Key) Flag() string {
	if k.flagless {
		return ""
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(k.Name)
}

// Keys returns everything that can be set, in the order of the documentation.
func Keys() []Key {
	defaults := Default()
	var keys []Key
	for _, s := range keyTable() {
		keys = append(keys, Key{Name: s.name, Default: s.displayDefault(&defaults), Meaning: s.meaning, Open: isOpen(s.name), flagless: s.flagless})
	}
	return keys
}

// Changed returns the settings that are not as by default, as people read them, secrets
// masked, by their keys.
func (c Config) Changed() map[string]string {
	defaults := Default()
	changed := map[string]string{}
	for _, s := range keyTable() {
		if value := displayValue(s.field(&c)); value != displayValue(s.field(&defaults)) {
			changed[s.name] = value
		}
	}
	return changed
}

// setting is one row of the table of keys.
type setting struct {
	name    string
	meaning string
	field   func(*Config) any // pointer to the value
	shown   string            // documented in the place of the default; empty = the default

	flagless bool
}

// displayDefault returns the default as it is documented.
func (s setting) displayDefault(defaults *Config) string {
	if s.shown != "" {
		return s.shown
	}
	return displayValue(s.field(defaults))
}

// keyTable is the table of keys: what is not in it cannot be set, and a test holds
// it against Config and docs/CONFIGURATION.md.
func keyTable() []setting {
	return slices.Concat([]setting{
		{name: "addr", meaning: "listen address; a non-loopback address requires an API key (`bobbin keys create`, or `auth.keys`)", field: func(c *Config) any { return &c.Addr }},
		{name: "database.url", shown: "sqlite://<data_dir>/bobbin.db", meaning: "`sqlite://path` or `postgres://user:password@host:5432/name`", field: func(c *Config) any { return &c.Database.URL }},
		{name: "database.durability", meaning: "for SQLite: `full`: acknowledged writes are on the disk and survive a power failure; `normal`: they survive a crash of the process, but the last moments may be lost in a power failure. For PostgreSQL, see its `synchronous_commit`", field: func(c *Config) any { return &c.Database.Durability }},
		{name: "data_dir", meaning: "everything that Bobbin writes", field: func(c *Config) any { return &c.DataDir }},
		{name: "agents_dir", meaning: "folder of `*.yaml`, one agent per file, read at startup and by `bobbin agents reload`; it need not exist, there are built-in agents", field: func(c *Config) any { return &c.AgentsDir }},
		{name: "default_agent", meaning: "agent of sessions that name none", field: func(c *Config) any { return &c.DefaultAgent }},
		{name: "default_llm", meaning: "model of agents that name none; empty: chosen at startup from the available keys", field: func(c *Config) any { return &c.DefaultLLM }},
		{name: "context_usage_threshold", meaning: "above this share of the model's window the oldest messages are summarized", field: func(c *Config) any { return &c.ContextUsageThreshold }},
		{name: "context_summary_model", meaning: "model that writes summaries; empty: `default_llm` or the small model, if it is at the provider of the model that answers, else that model itself", field: func(c *Config) any { return &c.ContextSummaryModel }},
		{name: "context_summary_role", meaning: "role of the summary in the prompt: `system`, part of the system prompt, or `user`, a message before the others, for models that treat everything in a system prompt as an instruction; empty: `system`", field: func(c *Config) any { return &c.ContextSummaryRole }},
		{name: "embedding_model", meaning: "model that makes memories searchable by meaning, and the messages of a session, which are embedded in the background: `openai:text-embedding-3-small`, `ollama:nomic-embed-text`, `provider:model`, or a name from `models`; empty: `hashing-384-v1`, offline, which matches words and not meaning. After a change: `bobbin api reindexMemories all_owners=true`", field: func(c *Config) any { return &c.EmbeddingModel }},
		{name: "models", flagless: true, shown: "the built-in table", meaning: "list of models that extend or override the built-in table, see below", field: func(c *Config) any { return &c.Models }},
		{name: "titles", meaning: "generate titles for sessions without one during their first message, by a small model call", field: func(c *Config) any { return &c.Titles }},
		{name: "tools.allow", meaning: "kinds of tools that files may describe ([TOOLS.md](TOOLS.md)): `mcp`, `http`, `openapi`, `command`. Such tools start programs, read environment variables and send what agents know, so allow only what your own files need", field: func(c *Config) any { return &c.Tools.Allow }},
		{name: "tools.fetch_url.enabled", meaning: "let agents that list the tool `fetch_url` read public web pages", field: func(c *Config) any { return &c.Tools.FetchURL.Enabled }},
		{name: "tools.fetch_url.ports", meaning: "ports that `fetch_url` may connect to", field: func(c *Config) any { return &c.Tools.FetchURL.Ports }},
		{name: "tools.fetch_url.time", meaning: "how long `fetch_url` may take for one page", field: func(c *Config) any { return &c.Tools.FetchURL.Time }},
		{name: "tools.fetch_url.bytes", meaning: "how much `fetch_url` reads of one page", field: func(c *Config) any { return &c.Tools.FetchURL.Bytes }},
		{name: "auth.keys", flagless: true, meaning: "API keys: a list of `{name, secret}` or of `name:secret`, the secret itself (24 characters or more) or `sha256:` and its hash (`bobbin keys new`). They are valid in addition to those of the database (`bobbin keys create`), with the scopes `read` and `write`, and `metrics` if `metrics.keys` names them; without any keys only this machine may call", field: func(c *Config) any { return &c.Auth.Keys }},
		{name: "auth.required", shown: "false on a loopback address, else true", meaning: "reject requests without a key, also from this machine", field: func(c *Config) any { return &c.Auth.Required }},
		{name: "auth.limits", flagless: true, meaning: "maximum model usage per UTC day: a list of `{key, usd_per_day, tokens_per_day}`, see below", field: func(c *Config) any { return &c.Auth.Limits }},
		{name: "log.level", meaning: "`debug`, `info`, `warn` or `error`", field: func(c *Config) any { return &c.Log.Level }},
		{name: "log.format", meaning: "`text`, `json`, or `auto`: text on a terminal, else JSON", field: func(c *Config) any { return &c.Log.Format }},
	}, jwtKeys(), replicaKeys(), serverKeys(), metricsKeys(), filesKeys(), webhookKeys(), slackKeys(), limitKeys(), retentionKeys())
}

func limitKeys() []setting {
	return []setting{
		{name: "limits.message_bytes", meaning: "largest message; larger ones are rejected", field: func(c *Config) any { return &c.Limits.MessageBytes }},
		{name: "limits.body_bytes", meaning: "largest body of a request", field: func(c *Config) any { return &c.Limits.BodyBytes }},
		{name: "limits.import_bytes", meaning: "largest history of one import", field: func(c *Config) any { return &c.Limits.ImportBytes }},
		{name: "limits.import_messages", meaning: "messages of one import", field: func(c *Config) any { return &c.Limits.ImportMessages }},
		{name: "limits.user_bytes", meaning: "stored messages of one end user (`auth.jwt`), in all sessions; 0: no limit", field: func(c *Config) any { return &c.Limits.UserBytes }},
		{name: "limits.owner_bytes", meaning: "the same for one owner", field: func(c *Config) any { return &c.Limits.OwnerBytes }},
		{name: "limits.request_memory_bytes", shown: "a quarter of the memory that the process may have, at most 256MiB", meaning: "memory for the bodies and responses of current requests, of all callers; one owner may have a quarter of it, one end user (`auth.jwt`) a sixteenth, but each at least what the largest request needs", field: func(c *Config) any { return &c.Limits.RequestMemoryBytes }},
		{name: "limits.request_disk_bytes", meaning: "disk space for their uploads, histories and downloads, in `data_dir`, with the same shares", field: func(c *Config) any { return &c.Limits.RequestDiskBytes }},
		{name: "limits.tool_output_bytes", meaning: "largest result of a tool, at most 8MiB; a larger one is an error", field: func(c *Config) any { return &c.Limits.ToolOutputBytes }},
		{name: "limits.tool_shown_bytes", meaning: "how much of a tool's result prompts show; a larger one is stored completely and shown by its beginning and its end", field: func(c *Config) any { return &c.Limits.ToolShownBytes }},
		{name: "limits.queued_runs", meaning: "waiting messages of one session", field: func(c *Config) any { return &c.Limits.QueuedRuns }},
		{name: "limits.runs_per_owner", meaning: "active and queued runs of one owner, in all sessions", field: func(c *Config) any { return &c.Limits.RunsPerOwner }},
		{name: "limits.runs_per_user", meaning: "the same for one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.RunsPerUser }},
		{name: "limits.concurrent_runs", shown: "one for each MiB of the memory that the process may have, 256 to 4096, and at most one for two open files", meaning: "concurrent runs in this process; more are queued until a process has a free slot", field: func(c *Config) any { return &c.Limits.ConcurrentRuns }},
		{name: "limits.open_streams", meaning: "open requests, of all callers", field: func(c *Config) any { return &c.Limits.OpenStreams }},
		{name: "limits.open_streams_per_owner", meaning: "the same for one owner", field: func(c *Config) any { return &c.Limits.OpenStreamsPerOwner }},
		{name: "limits.open_streams_per_user", meaning: "the same for one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.OpenStreamsPerUser }},
		{name: "limits.requests_per_second", meaning: "requests of one key per second, ten times as many in a burst; 0: no limit. This machine's own user has no limit", field: func(c *Config) any { return &c.Limits.RequestsPerSecond }},
		{name: "limits.user_requests_per_second", meaning: "the same for one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.UserRequests }},
		{name: "limits.guesses_per_minute", meaning: "requests without a valid key from one address (IPv6: /64) per minute; a valid key is never limited; 0: no limit", field: func(c *Config) any { return &c.Limits.GuessesPerMinute }},
		{name: "limits.wait_time", meaning: "how long a request waits for its answer", field: func(c *Config) any { return &c.Limits.WaitTime }},
		{name: "limits.run_time", meaning: "time limit of one run", field: func(c *Config) any { return &c.Limits.RunTime }},
		{name: "limits.tool_time", meaning: "time limit of one tool call", field: func(c *Config) any { return &c.Limits.ToolTime }},
		{name: "limits.approval_time", meaning: "how long a run waits for the approval of a tool call; after that the call counts as not approved. 0s: no limit", field: func(c *Config) any { return &c.Limits.ApprovalTime }},
		{name: "limits.summary_time", meaning: "how long a message waits for a summary; after that the prompt continues without it, and the summary is finished in the background. Also the time limit of a model call for notes on a tool loop", field: func(c *Config) any { return &c.Limits.SummaryTime }},
		{name: "limits.background_summary_time", meaning: "time limit of a model call for one summary; after that it is canceled, and retried later. Also how long `/summarize` waits: it then responds with what is covered so far, and the rest continues in the background", field: func(c *Config) any { return &c.Limits.BackgroundSummaryTime }},
		{name: "limits.shutdown_grace", meaning: "how long active work may continue when Bobbin stops", field: func(c *Config) any { return &c.Limits.ShutdownGrace }},
	}
}
