package config

import (
	"net"
	"path/filepath"
	"time"
)

// Config is all settings. A value of Load is complete and valid: nothing in it has
// to be checked again.
type Config struct {
	Addr                  string // host:port
	Database              Database
	DataDir               string
	NATS                  NATS
	Replica               Replica
	AgentsDir             string
	DefaultAgent          string
	DefaultLLM            string  // empty = chosen at start, from the keys that are there
	ContextUsageThreshold float64 // share of the window
	ContextSummaryModel   string  // empty = DefaultLLM
	ContextSummaryRole    string  // system or user; empty = the policy's
	EmbeddingModel        string  // of memories; empty = without a model, by words
	Models                []Model
	Titles                bool // sessions without a title get one after their first answer
	Tools                 Tools
	Auth                  Auth
	Server                Server
	Log                   Log
	Metrics               Metrics
	Telemetry             Telemetry
	Files                 Files
	Webhooks              Webhooks
	Slack                 Slack
	Limits                Limits
	Retention             Retention
}

// Database is where everything durable is kept.
type Database struct {
	URL        Secret // sqlite://path or postgres://user:password@host/name
	Durability string // of SQLite; one of Durabilities
}

// Auth is who may call.
type Auth struct {
	Keys     []APIKey
	Required bool // requests without a key are refused, from this machine too
	Limits   []SpendLimit
	JWT      JWT
}

// SpendLimit bounds what the models may cost that are called for one key, each day
// of UTC.
type SpendLimit struct {
	Key          string  // name of an API key; "local" = this machine's own user
	USDPerDay    float64 // US dollars; 0 = no limit
	TokensPerDay int     // prompts and answers together; 0 = no limit
}

// Tools are settings of tools for all agents.
type Tools struct {
	FetchURL FetchURL
	Allow    []string // kinds of tools that files may describe; see core.ToolKinds
}

// FetchURL is the tool fetch_url.
type FetchURL struct {
	Enabled bool
	Ports   []string // that it may connect to
	Time    time.Duration
	Bytes   Bytes // that it reads of a page
}

// APIKey is a key of the HTTP API. Several may have one name, so that a secret can
// be changed without a gap.
type APIKey struct {
	Name   string // of the owner of what the key makes
	Secret Secret // itself, or HashPrefix and its SHA-256 in hex
}

// Log is what is logged and how; the words are those of LogLevels and LogFormats.
type Log struct {
	Level  string
	Format string
}

// Limits bound what a request or a run may take.
type Limits struct {
	MessageBytes        Bytes // of one message
	BodyBytes           Bytes // of one HTTP request's body
	ImportBytes         Bytes // of one history that is imported
	ImportMessages      int   // of one history
	UserBytes           Bytes // of the stored messages of one end user; 0 = no limit
	OwnerBytes          Bytes // the same of one owner
	RequestMemoryBytes  Bytes // of the requests in hand, of all callers; 0 = as the machine has it
	RequestDiskBytes    Bytes // the same, in the data folder
	ToolOutputBytes     Bytes // of one tool's result
	ToolShownBytes      Bytes // of one tool's result in prompts
	QueuedRuns          int   // of one session
	RunsPerOwner        int   // queued or at work
	RunsPerUser         int   // the same of one end user
	ConcurrentRuns      int   // of this process; more wait; 0 = as the machine has memory and open files
	OpenStreams         int   // requests that are held open, of all callers
	OpenStreamsPerOwner int
	OpenStreamsPerUser  int           // of one end user
	RequestsPerSecond   int           // of one key, for long; ten times as many at once; 0 = no limit
	UserRequests        int           // the same of one end user
	GuessesPerMinute    int           // requests without a valid key from one address; 0 = no limit
	WaitTime            time.Duration // a waiting request is held so long
	RunTime             time.Duration // of one execution of a run
	ToolTime            time.Duration // of one tool call
	ApprovalTime        time.Duration // a run waits so long for a person's decision; 0 = until there is one
	SummaryTime         time.Duration // of one summary's model calls

	BackgroundSummaryTime time.Duration // the same of a summary that nobody waits for
	ShutdownGrace         time.Duration // for the work in hand when the process stops
}

// Default returns the settings of a Bobbin that nobody configured.
func Default() Config {
	c := Config{
		Addr: "127.0.0.1:8080", DataDir: "./bobbin-data", AgentsDir: "agents", DefaultAgent: "assistant",
		ContextUsageThreshold: 0.8, Titles: true,
		Tools:    Tools{FetchURL: FetchURL{Ports: []string{"80", "443"}, Time: 20 * time.Second, Bytes: 2 << 20}},
		Database: Database{Durability: DurabilityFull},
		Log:      Log{Level: "info", Format: "auto"},
		Auth:     Auth{JWT: defaultJWT()},
		Files:    defaultFiles(), Webhooks: defaultWebhooks(), Slack: defaultSlack(), Retention: Retention{Events: 720 * time.Hour},
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
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	return isThisMachine(host)
}

// The words of database.durability.
const (
	DurabilityFull   = "full"   // what is acknowledged survives the loss of power
	DurabilityNormal = "normal" // it survives a crash of the process
)

// Durabilities returns the words that database.durability takes.
func Durabilities() []string { return []string{DurabilityFull, DurabilityNormal} }

// LogLevels returns the words that log.level takes.
func LogLevels() []string { return []string{"debug", "info", "warn", "error"} }

// LogFormats returns the words that log.format takes: auto is text on a terminal,
// else json.
func LogFormats() []string { return []string{"auto", "text", "json"} }
