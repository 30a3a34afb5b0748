// Package config is Bobbin's settings: one plain struct, its defaults, where its
// values come from, and what is wrong with them.
//
// Load reads the sources in this order, the first that has a key wins: flag,
// environment variable, bobbin.yaml, default. Everything that is wrong comes back
// at once, each fault with its place, its key, and what to do. The tags key of the
// fields are what can be set (Keys); docs/CONFIGURATION.md says what each means.
//
// A Config is plain data: copy it, hand parts their sub-struct. Secrets print as
// *** in every way.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"path/filepath"
	"strings"
	"time"

	"bobbin/app/core"
)

// Config is all settings. A value of Load is complete and valid: nothing in it has
// to be checked again.
type Config struct {
	Addr                  string    `key:"addr"` // host:port
	Database              Database  `key:"database"`
	DataDir               string    `key:"data_dir"`
	NATS                  NATS      `key:"nats"`
	Replica               Replica   `key:"replica"`
	AgentsDir             string    `key:"agents_dir"`
	DefaultAgent          string    `key:"default_agent"`
	DefaultLLM            string    `key:"default_llm"`                               // empty = chosen at start, from the keys that are there
	ContextUsageThreshold float64   `key:"context_usage_threshold" range:"0.01..1"`   // share of the window
	ContextSummaryModel   string    `key:"context_summary_model"`                     // empty = DefaultLLM
	ContextSummaryRole    string    `key:"context_summary_role" words:",system,user"` // system or user; empty = the policy's
	EmbeddingModel        string    `key:"embedding_model"`                           // of memories; empty = without a model, by words
	Models                []Model   `key:"models" flag:"-" shown:"the built-in table"`
	Titles                bool      `key:"titles"` // sessions without a title get one after their first answer
	Tools                 Tools     `key:"tools"`
	Auth                  Auth      `key:"auth"`
	Server                Server    `key:"server"`
	Log                   Log       `key:"log"`
	Metrics               Metrics   `key:"metrics"`
	Telemetry             Telemetry `key:"telemetry"`
	Files                 Files     `key:"files"`
	Webhooks              Webhooks  `key:"webhooks"`
	Slack                 Slack     `key:"slack"`
	Limits                Limits    `key:"limits"`
	Retention             Retention `key:"retention"`
}

// Database is where everything durable is kept.
type Database struct {
	URL        Secret `key:"url" shown:"sqlite://<data_dir>/bobbin.db"` // sqlite://path or postgres://user:password@host/name
	Durability string `key:"durability" words:"full,normal"`            // of SQLite
}

// Auth is who may call.
type Auth struct {
	Keys     []APIKey     `key:"keys" flag:"-"`
	Required bool         `key:"required" shown:"false on a loopback address, else true"` // requests without a key are refused, from this machine too
	Limits   []SpendLimit `key:"limits" flag:"-"`
	JWT      JWT          `key:"jwt"`
}

// SpendLimit bounds what the models may cost that are called for one key, each day
// of UTC.
type SpendLimit struct {
	Key          string  `key:"key"`                               // name of an API key; "local" = this machine's own user
	USDPerDay    float64 `key:"usd_per_day" range:"0..1000000000"` // US dollars; 0 = no limit
	TokensPerDay int     `key:"tokens_per_day" range:"0.."`        // prompts and answers together; 0 = no limit
}

// Tools are settings of tools for all agents.
type Tools struct {
	FetchURL FetchURL `key:"fetch_url"`
	Allow    []string `key:"allow"` // kinds of tools that files may describe; see core.ToolKinds
}

// FetchURL is the tool fetch_url.
type FetchURL struct {
	Enabled bool          `key:"enabled"`
	Ports   []string      `key:"ports"` // that it may connect to
	Time    time.Duration `key:"time" range:"100ms..10m"`
	Bytes   Bytes         `key:"bytes" range:"1KiB..8MiB"` // that it reads of a page
}

// APIKey is a key of the HTTP API. Several may have one name, so that a secret can
// be changed without a gap.
type APIKey struct {
	Name   string // of the owner of what the key makes
	Secret Secret // itself, or HashPrefix and its SHA-256 in hex
}

// Log is what is logged and how; auto is text on a terminal, else json.
type Log struct {
	Level  string `key:"level" words:"debug,info,warn,error"`
	Format string `key:"format" words:"auto,text,json"`
}

// Limits bound what a request or a run may take.
type Limits struct {
	MessageBytes        Bytes         `key:"message_bytes" range:"1KiB..1GiB"`                                                                                                              // of one message
	BodyBytes           Bytes         `key:"body_bytes" range:"1KiB..1GiB"`                                                                                                                 // of one HTTP request's body
	ImportBytes         Bytes         `key:"import_bytes" range:"1KiB..1GiB"`                                                                                                               // of one history that is imported
	ImportMessages      int           `key:"import_messages" range:"1.."`                                                                                                                   // of one history
	UserBytes           Bytes         `key:"user_bytes" range:"0|1MiB.."`                                                                                                                   // of the stored messages of one end user; 0 = no limit
	OwnerBytes          Bytes         `key:"owner_bytes" range:"0|1MiB.."`                                                                                                                  // the same of one owner
	RequestMemoryBytes  Bytes         `key:"request_memory_bytes" shown:"a quarter of the memory that the process may have, at most 256MiB"`                                                // of the requests in hand, of all callers; 0 = as the machine has it
	RequestDiskBytes    Bytes         `key:"request_disk_bytes"`                                                                                                                            // the same, in the data folder
	ToolOutputBytes     Bytes         `key:"tool_output_bytes" range:"1KiB..8MiB"`                                                                                                          // of one tool's result
	ToolShownBytes      Bytes         `key:"tool_shown_bytes" range:"1KiB..8MiB"`                                                                                                           // of one tool's result in prompts
	QueuedRuns          int           `key:"queued_runs" range:"1.."`                                                                                                                       // of one session
	RunsPerOwner        int           `key:"runs_per_owner" range:"1.."`                                                                                                                    // queued or at work
	RunsPerUser         int           `key:"runs_per_user" range:"1.."`                                                                                                                     // the same of one end user
	ConcurrentRuns      int           `key:"concurrent_runs" range:"0.." shown:"one for each MiB of the memory that the process may have, 256 to 4096, and at most one for two open files"` // of this process; more wait; 0 = as the machine has memory and open files
	OpenStreams         int           `key:"open_streams" range:"1.."`                                                                                                                      // requests that are held open, of all callers
	OpenStreamsPerOwner int           `key:"open_streams_per_owner" range:"1.."`
	OpenStreamsPerUser  int           `key:"open_streams_per_user" range:"1.."`    // of one end user
	RequestsPerSecond   int           `key:"requests_per_second" range:"0.."`      // of one key, for long; ten times as many at once; 0 = no limit
	UserRequests        int           `key:"user_requests_per_second" range:"0.."` // the same of one end user
	GuessesPerMinute    int           `key:"guesses_per_minute" range:"0.."`       // requests without a valid key from one address; 0 = no limit
	WaitTime            time.Duration `key:"wait_time" range:"100ms.."`            // a waiting request is held so long
	RunTime             time.Duration `key:"run_time" range:"100ms.."`             // of one execution of a run
	ToolTime            time.Duration `key:"tool_time" range:"100ms.."`            // of one tool call
	ApprovalTime        time.Duration `key:"approval_time" range:"0|1s.."`         // a run waits so long for a person's decision; 0 = until there is one
	SummaryTime         time.Duration `key:"summary_time" range:"100ms.."`         // of one summary's model calls

	BackgroundSummaryTime time.Duration `key:"background_summary_time" range:"100ms.."` // the same of a summary that nobody waits for
	ShutdownGrace         time.Duration `key:"shutdown_grace" range:"0s.."`             // for the work in hand when the process stops
}

// Default returns the settings of a Bobbin that nobody configured.
func Default() Config {
	c := Config{
		Addr: "127.0.0.1:8080", DataDir: "./bobbin-data", AgentsDir: "agents", DefaultAgent: "assistant",
		ContextUsageThreshold: 0.8, Titles: true,
		Tools:    Tools{FetchURL: FetchURL{Ports: []string{"80", "443"}, Time: 20 * time.Second, Bytes: 2 << 20}},
		Database: Database{Durability: DurabilityFull},
		Log:      Log{Level: "info", Format: "auto"},
		Auth:     Auth{JWT: JWT{UserClaim: "sub", Scopes: []string{"read", "write"}, Leeway: 30 * time.Second, MaxLife: 24 * time.Hour, Refresh: 15 * time.Minute}},
		Files: Files{
			Bytes: 20 << 20, PerMessage: 8, TotalBytes: 1 << 30, UserBytes: 100 << 20, NativePDF: "scanned",
			Types: []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/*", "application/json", "application/pdf", officeTypes + "wordprocessingml.document", officeTypes + "spreadsheetml.sheet", officeTypes + "presentationml.presentation"},
		},
		Webhooks: Webhooks{Time: 15 * time.Second, Concurrent: 16}, Slack: Slack{Owner: core.LocalOwner, APIURL: "https://slack.com/api/"}, Retention: Retention{Events: 720 * time.Hour},
		Limits: Limits{
			MessageBytes: 1 << 20, BodyBytes: 8 << 20, ImportBytes: 64 << 20, ImportMessages: 100_000, UserBytes: 512 << 20, RequestDiskBytes: 1 << 30, ToolOutputBytes: 4 << 20, ToolShownBytes: 64 << 10,
			QueuedRuns: 100, RunsPerOwner: 4096, RunsPerUser: 20, OpenStreams: 8192, OpenStreamsPerOwner: 4096, OpenStreamsPerUser: 32, RequestsPerSecond: 100, UserRequests: 10, GuessesPerMinute: 60,
			WaitTime: 5 * time.Minute, RunTime: 10 * time.Minute, ToolTime: time.Minute, ApprovalTime: 24 * time.Hour,
			SummaryTime: 10 * time.Second, BackgroundSummaryTime: time.Minute, ShutdownGrace: 30 * time.Second,
		},
	}
	c.Database.URL = c.embeddedURL()
	return c
}

// embeddedURL returns the URL of the database in the data folder.
func (c Config) embeddedURL() Secret {
	return NewSecretURL("sqlite://" + filepath.ToSlash(filepath.Join(c.DataDir, "bobbin.db")))
}

// Loopback reports whether the listen address is reached from this machine only.
func (c Config) Loopback() bool { return isLoopback(c.Addr) }

// isLoopback reports whether host:port is an address of this machine alone.
func isLoopback(addr string) bool {
	host, _, _ := net.SplitHostPort(addr) // empty for what is none
	return isThisMachine(host)
}

// The words of database.durability.
const (
	DurabilityFull   = "full"   // what is acknowledged survives the loss of power
	DurabilityNormal = "normal" // it survives a crash of the process
)

// Model is an entry of models: it extends the built-in table or overrides it.
type Model struct {
	Name            string        `key:"name"`                                                                                                    // what agents call it
	Provider        string        `key:"provider" words:"openai,anthropic,gemini,ollama,mistral,openrouter,bedrock,vertex,demo,langchain/ollama"` // any other server of OpenAI's dialect is "openai" with a base_url
	Model           string        `key:"model"`                                                                                                   // what the provider calls it; empty = Name
	BaseURL         string        `key:"base_url"`                                                                                                // empty = the provider's own
	Region          string        `key:"region"`                                                                                                  // for providers bedrock and vertex; empty = of the environment
	Project         string        `key:"project"`                                                                                                 // of Google Cloud, for provider vertex; empty = of the environment
	API             string        `key:"api" words:",chat,responses"`                                                                             // for provider openai; empty = chat
	APIKeyEnv       string        `key:"api_key_env"`                                                                                             // name of the environment variable that holds the key; empty = the provider's usual one
	ContextWindow   int           `key:"context_window" range:"0|1024.."`                                                                         // tokens; 0 = by the model's name
	MaxOutputTokens int           `key:"max_output_tokens"`                                                                                       // 0 = by the model's name
	Encoding        string        `key:"encoding" words:",cl100k_base,o200k_base"`                                                                // empty = by the model's name
	InputPrice      float64       `key:"input_price" range:"0..1000000"`                                                                          // US dollars per million tokens; 0 = not known
	OutputPrice     float64       `key:"output_price" range:"0..1000000"`
	CacheReadPrice  float64       `key:"cache_read_price" range:"0..1000000"`                        // of the part of a prompt that the provider had cached; 0 = InputPrice
	CacheWritePrice float64       `key:"cache_write_price" range:"0..1000000"`                       // of the part that it put into its cache; 0 = InputPrice
	ThinkingBudget  int           `key:"thinking_budget" range:"0|1024.."`                           // tokens, for models of Claude; 0 = no thinking
	Images          *bool         `key:"images"`                                                     // whether it sees images; nil = by the model's name
	Documents       *bool         `key:"documents"`                                                  // whether it gets PDFs as files; nil = by the provider and the model's name
	Slots           int           `key:"slots" range:"0.."`                                          // requests that its server works on at once; 0 = found out
	FirstByteTime   time.Duration `key:"first_byte_time" range:"0|1s.."`                             // until its server begins to answer; 0 = by the address
	IdleTime        time.Duration `key:"idle_time" range:"0|1s.."`                                   // between two pieces of the answer; 0 = by the address
	MaxTokensField  string        `key:"max_tokens_field" words:",max_tokens,max_completion_tokens"` // empty = by the server
	OpensThought    bool          `key:"prompt_opens_thought"`                                       // its chat template writes the begin tag of a thought at the end of the prompt
	PrefixContract  string        `key:"prefix_contract" words:",free,drops,refuses"`                // empty = by the model's name
}

// PriorFactor returns how many of the model's tokens one cl100k_base token is
// expected to be before anything was measured; 0 = by the model's name.
func (m Model) PriorFactor() float64 {
	if m.Encoding == "" {
		return 0
	}
	return 1 // o200k_base has no more tokens than cl100k_base but in rare texts
}

// APIResponses is the API of OpenAI's models that gives their reasoning back.
const APIResponses = "responses"

// HashPrefix begins a secret that is told by its hash only, so that the file need
// not hold it.
const HashPrefix = "sha256:"

// Hashed reports whether only the hash of the secret is known.
func (k APIKey) Hashed() bool { return strings.HasPrefix(k.Secret.Reveal(), HashPrefix) }

// Sum returns the SHA-256 of the secret; false for a hash that is none.
func (k APIKey) Sum() ([sha256.Size]byte, bool) {
	digits, hashed := strings.CutPrefix(k.Secret.Reveal(), HashPrefix)
	if !hashed {
		return sha256.Sum256([]byte(k.Secret.Reveal())), true
	}
	var sum [sha256.Size]byte
	n, err := hex.Decode(sum[:], []byte(digits[:min(len(digits), 2*sha256.Size)]))
	return sum, err == nil && n == sha256.Size && len(digits) == 2*sha256.Size
}

// NewAPIKey returns a key with a fresh random secret of 256 bits, and the secret.
// It panics if the system's random source fails.
func NewAPIKey(name string) (key APIKey, secret string) {
	secret = core.NewSecret()
	return APIKey{Name: name, Secret: NewSecret(HashPrefix + core.SecretHash(secret))}, secret
}
