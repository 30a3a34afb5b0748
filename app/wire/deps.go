// Package wire builds the parts of Bobbin: plain functions from settings and values to
// values, none of them half built. A server (package app), a replay (package eval) and the
// one-off commands (package ops) are made of the same parts.
package wire

import (
	"log/slog"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
	"bobbin/app/runs"
	"bobbin/app/slack"
	"bobbin/app/telemetry"
)

// Deps are what the parts of a process share.
type Deps struct {
	Config      config.Config
	Logger      *slog.Logger
	Database    *db.DB
	Stores      Stores
	Search      core.SearchStore  // Stores.Search, or meaning beside it
	AgentSearch *core.AgentSearch // Search, as agents use it
	Searches    *quota.Quota      // places for searches at once
	Feed        *events.Feed
	Bus         events.Bus
	Counter     llm.TokenCounter
	Models      Models
	Budget      *runs.Budget
	Stored      *quota.Stored // nil = no limits
	Telemetry   *telemetry.Telemetry
	Labels      *Labels        // of metrics; nil where nobody reads them
	Slack       *slack.Clients // nil = Slack is off
	SlackPosts  *slack.Outbox  // likewise
	Worker      string         // names this process in leases
}

// Stores are the repositories over one database.
type Stores struct {
	Sessions           *repositories.Sessions
	Messages           *repositories.Messages
	Branches           *repositories.Branches
	Aliases            *repositories.Aliases
	SlackInbox         *repositories.SlackInbox
	SlackThreads       *repositories.SlackThreads
	SlackPosts         *repositories.SlackPosts
	SlackInstallations *repositories.SlackInstallations
	Webhooks           *repositories.OwnerWebhooks
	Summaries          *repositories.Summaries
	Standing           *repositories.StandingInstructions
	Setups             *repositories.PromptSetups
	Runs               *repositories.Runs
	Events             *repositories.Events
	Calibrations       *repositories.Calibrations
	ModelCalls         *repositories.ModelCalls
	Keys               *repositories.IdempotencyKeys
	Memories           *repositories.Memories
	Search             *repositories.Search
	MessageVectors     *repositories.MessageVectors
	Blobs              *repositories.Blobs
	Deliveries         *repositories.Deliveries
	APIKeys            *repositories.APIKeys
	Audit              *repositories.Audit
}

// NewStores returns the repositories over the database.
func NewStores(database *db.DB) Stores {
	g := database.Gorm
	return Stores{
		Sessions: repositories.NewSessions(g), Messages: repositories.NewMessages(g), Branches: repositories.NewBranches(g),
		Aliases: repositories.NewAliases(g), SlackInbox: repositories.NewSlackInbox(g), SlackThreads: repositories.NewSlackThreads(g), SlackPosts: repositories.NewSlackPosts(g), SlackInstallations: repositories.NewSlackInstallations(g), Webhooks: repositories.NewOwnerWebhooks(g), Summaries: repositories.NewSummaries(g),
		Standing: repositories.NewStandingInstructions(g), Setups: repositories.NewPromptSetups(g),
		Runs: repositories.NewRuns(g).WithReserve(database.Reserve), Events: repositories.NewEvents(g),
		Calibrations: repositories.NewCalibrations(g), ModelCalls: repositories.NewModelCalls(g),
		Keys: repositories.NewIdempotencyKeys(g), Memories: repositories.NewMemories(g), Search: repositories.NewSearch(g), MessageVectors: repositories.NewMessageVectors(g),
		Blobs: repositories.NewBlobs(g), Deliveries: repositories.NewDeliveries(g),
		APIKeys: repositories.NewAPIKeys(g), Audit: repositories.NewAudit(g),
	}
}
