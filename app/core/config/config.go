package config

import (
	"net"
	"path/filepath"
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
