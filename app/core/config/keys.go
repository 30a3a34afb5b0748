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
	for _, s := range settings() {
		keys = append(keys, Key{Name: s.name, Default: s.display(&defaults), Meaning: s.meaning, flagless: s.flagless})
	}
	return keys
}

// Changed returns the settings that are not as by default, as people read them, secrets
// masked, by their keys.
func (c Config) Changed() map[string]string {
	defaults := Default()
	changed := map[string]string{}
	for _, s := range settings() {
		if value := show(s.field(&c)); value != show(s.field(&defaults)) {
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

// display returns the default as it is documented.
func (s setting) display(defaults *Config) string {
	if s.shown != "" {
		return s.shown
	}
	return show(s.field(defaults))
}

// settings is the table of keys: what is not in it cannot be set, and a test holds
// it against Config and docs/CONFIGURATION.md.
func settings() []setting {
	return slices.Concat([]setting{
		{name: "addr", meaning: "listen address; another than a loopback address needs an API key (`bobbin keys create`, or `auth.keys`)", field: func(c *Config) any { return &c.Addr }},
		{name: "database.url", shown: "sqlite://<data_dir>/bobbin.db", meaning: "`sqlite://path` or `postgres://user:password@host:5432/name`", field: func(c *Config) any { return &c.Database.URL }},
		{name: "data_dir", meaning: "everything that Bobbin writes", field: func(c *Config) any { return &c.DataDir }},
		{name: "agents_dir", meaning: "folder of `*.yaml`, one agent a file; it need not exist, the built-in agents do without", field: func(c *Config) any { return &c.AgentsDir }},
		{name: "default_agent", meaning: "agent of sessions that name none", field: func(c *Config) any { return &c.DefaultAgent }},
		{name: "default_llm", meaning: "model of agents that name none; empty: chosen at start from the keys that are there", field: func(c *Config) any { return &c.DefaultLLM }},
		{name: "context_usage_threshold", meaning: "over this share of the model's window the oldest messages are summarized", field: func(c *Config) any { return &c.ContextUsageThreshold }},
		{name: "context_summary_model", meaning: "model that writes summaries; empty: `default_llm`", field: func(c *Config) any { return &c.ContextSummaryModel }},
		{name: "embedding_model", meaning: "model that makes memories searchable: `openai:text-embedding-3-small`, `ollama:nomic-embed-text`, `provider:model`, or a name from `models`; empty: `hashing-384-v1`, offline, which matches words and not meaning. After a change: `bobbin memories reindex`", field: func(c *Config) any { return &c.EmbeddingModel }},
		{name: "models", flagless: true, shown: "the built-in table", meaning: "list of models that extend or override the built-in table, see below", field: func(c *Config) any { return &c.Models }},
		{name: "titles", meaning: "give sessions without a title one after their first answer, by a small model call", field: func(c *Config) any { return &c.Titles }},
		{name: "tools.fetch_url.enabled", meaning: "let agents that list the tool `fetch_url` read public web pages", field: func(c *Config) any { return &c.Tools.FetchURL.Enabled }},
		{name: "tools.fetch_url.ports", meaning: "ports that `fetch_url` may connect to", field: func(c *Config) any { return &c.Tools.FetchURL.Ports }},
		{name: "tools.fetch_url.time", meaning: "how long `fetch_url` may take for one page", field: func(c *Config) any { return &c.Tools.FetchURL.Time }},
		{name: "tools.fetch_url.bytes", meaning: "how much `fetch_url` reads of one page", field: func(c *Config) any { return &c.Tools.FetchURL.Bytes }},
		{name: "auth.keys", flagless: true, meaning: "API keys: a list of `{name, secret}` or of `name:secret`, the secret itself or `sha256:` and its hash (`bobbin keys new`). They count beside those of the database (`bobbin keys create`), with all scopes but `metrics`; without any of both only this machine may call", field: func(c *Config) any { return &c.Auth.Keys }},
		{name: "auth.required", shown: "false on a loopback address, else true", meaning: "refuse requests without a key, from this machine too", field: func(c *Config) any { return &c.Auth.Required }},
		{name: "auth.limits", flagless: true, meaning: "what models may cost each day of UTC: a list of `{key, usd_per_day, tokens_per_day}`, see below", field: func(c *Config) any { return &c.Auth.Limits }},
		{name: "log.level", meaning: "`debug`, `info`, `warn` or `error`", field: func(c *Config) any { return &c.Log.Level }},
		{name: "log.format", meaning: "`text`, `json`, or `auto`: text on a terminal, else JSON", field: func(c *Config) any { return &c.Log.Format }},
	}, jwts(), replicas(), server(), metrics(), files(), webhooks(), limits(), retention())
}

func limits() []setting {
	return []setting{
		{name: "limits.message_bytes", meaning: "largest message; a larger one is refused", field: func(c *Config) any { return &c.Limits.MessageBytes }},
		{name: "limits.body_bytes", meaning: "largest body of a request", field: func(c *Config) any { return &c.Limits.BodyBytes }},
		{name: "limits.import_bytes", meaning: "largest history that is imported at once", field: func(c *Config) any { return &c.Limits.ImportBytes }},
		{name: "limits.import_messages", meaning: "messages of one such history", field: func(c *Config) any { return &c.Limits.ImportMessages }},
		{name: "limits.tool_output_bytes", meaning: "largest result of a tool, at most 8MiB; a larger one is an error", field: func(c *Config) any { return &c.Limits.ToolOutputBytes }},
		{name: "limits.tool_shown_bytes", meaning: "how much of a tool's result prompts show; a larger one is kept whole and shown by its beginning and its end", field: func(c *Config) any { return &c.Limits.ToolShownBytes }},
		{name: "limits.memory_index_bytes", meaning: "vectors of memories that are kept in memory, of all owners; beyond it the rows are scanned, which is slower", field: func(c *Config) any { return &c.Limits.MemoryIndexBytes }},
		{name: "limits.queued_runs", meaning: "messages of one session that wait for their turn", field: func(c *Config) any { return &c.Limits.QueuedRuns }},
		{name: "limits.runs_per_owner", meaning: "runs of one owner that are at work or wait for their turn, in all sessions", field: func(c *Config) any { return &c.Limits.RunsPerOwner }},
		{name: "limits.runs_per_user", meaning: "the same of one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.RunsPerUser }},
		{name: "limits.concurrent_runs", meaning: "runs at once in this process; more wait", field: func(c *Config) any { return &c.Limits.ConcurrentRuns }},
		{name: "limits.open_streams", meaning: "requests that are held open at once, of all callers", field: func(c *Config) any { return &c.Limits.OpenStreams }},
		{name: "limits.open_streams_per_owner", meaning: "the same of one owner", field: func(c *Config) any { return &c.Limits.OpenStreamsPerOwner }},
		{name: "limits.open_streams_per_user", meaning: "the same of one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.OpenStreamsPerUser }},
		{name: "limits.requests_per_second", meaning: "requests of one key each second, ten times as many at once; 0: no limit. This machine's own user has none", field: func(c *Config) any { return &c.Limits.RequestsPerSecond }},
		{name: "limits.user_requests_per_second", meaning: "the same of one end user (`auth.jwt`)", field: func(c *Config) any { return &c.Limits.UserRequests }},
		{name: "limits.guesses_per_minute", meaning: "requests without a valid key from one address (IPv6: /64) each minute; who was let in before is not held up; 0: no limit", field: func(c *Config) any { return &c.Limits.GuessesPerMinute }},
		{name: "limits.wait_time", meaning: "how long a request waits for its answer", field: func(c *Config) any { return &c.Limits.WaitTime }},
		{name: "limits.run_time", meaning: "how long one run may take", field: func(c *Config) any { return &c.Limits.RunTime }},
		{name: "limits.tool_time", meaning: "how long one tool call may take", field: func(c *Config) any { return &c.Limits.ToolTime }},
		{name: "limits.approval_time", meaning: "how long a run waits for the approval of a tool call; after it the call counts as not approved. 0s: until somebody answers", field: func(c *Config) any { return &c.Limits.ApprovalTime }},
		{name: "limits.summary_time", meaning: "how long a model may take for a summary; after it the summary is made without one", field: func(c *Config) any { return &c.Limits.SummaryTime }},
		{name: "limits.background_summary_time", meaning: "the same for a summary that nobody waits for; after it there is none, and it is tried again later", field: func(c *Config) any { return &c.Limits.BackgroundSummaryTime }},
		{name: "limits.shutdown_grace", meaning: "how long work in hand may go on when Bobbin stops", field: func(c *Config) any { return &c.Limits.ShutdownGrace }},
	}
}
