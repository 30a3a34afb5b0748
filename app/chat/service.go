package chat

import (
	"context"
	"log/slog"

	"bobbin/app/blobs"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
)

// worker executes runs in this process (runs.Runner).
type worker interface {
	Begin(ctx context.Context, accept func(worker string) (core.Accepted, error)) (core.Accepted, error)
	Next(ctx context.Context, session core.SessionID)
	Cancel(run core.RunID) bool
}

// slackApp is Bobbin's app in Slack.
type slackApp interface {
	// CheckInstalled returns an error unless the app is installed in the workspace.
	CheckInstalled(ctx context.Context, team string) error
	// OnlyTeam returns the workspace if there can be only one.
	OnlyTeam(ctx context.Context) (string, error)
	// Describe returns where people find the thread, as far as Slack says.
	Describe(ctx context.Context, t core.SlackThread) core.SlackPlace
	// LookUp stores whether an unknown post is in Slack.
	LookUp(ctx context.Context, p core.SlackPost) error
}

// Limits bound what callers may send. Sizes are bytes of UTF-8.
type Limits struct {
	Message int // content of a message
	Result  int // of a call that a client or a person answers
	Queued  int // messages of a session that wait for their turn
	Owned   int // runs of an owner that are queued or at work
	OfUser  int // the same of an end user
}

// What else callers may send, in bytes.
const (
	maxSessionTitle = 500
	maxInstructions = 16 << 10
	maxMetadata     = 16 << 10
	maxName         = 200 // names and ids that callers choose
	maxFocus        = 2000
	maxComment      = 2000
)

// Options are what a Service is made of. All but Budget and Observer are required.
type Options struct {
	Sessions     core.SessionStore
	Messages     core.MessageStore
	Branches     *repositories.Branches
	Summaries    core.SummaryStore
	Instructions *repositories.StandingInstructions
	Inspector    *compaction.Inspector // of contexts, and of their summaries as people wish them
	Aliases      *repositories.Aliases
	Slack        *repositories.SlackThreads
	SlackPosts   *repositories.SlackPosts
	SlackApp     slackApp // nil = Slack is off
	Webhooks     *repositories.OwnerWebhooks
	Runs         core.RunStore
	Events       core.EventStore
	Feed         *events.Feed
	Work         worker
	Agents       core.AgentCatalog
	FindModel    func(name string) (llm.Model, error) // the default model for an empty name (llm.Offer.Get)
	Counter      llm.TokenCounter
	Files        *blobs.Service
	DefaultAgent string        // of sessions that name none
	Budget       llm.Budget    // nil = no limits
	Stored       *quota.Stored // likewise
	Observer     core.Observer // nil = none
	// PrivateWebhooks allows webhooks whose address is not of the public internet.
	PrivateWebhooks bool
	Limits          Limits
	Logger          *slog.Logger
}

// Service is the use cases. Safe for concurrent use.
type Service struct {
	Options

	forks *quota.Quota // places for forks at once
	// agents are those of the sessions that were served last, so that a message need not load its session
	// first. An entry may be outdated: core.RunStore.Accept checks it.
	agents *core.Cache[agentKey, core.SessionAgent]
}

// agentKey is a session as a caller sees it.
type agentKey struct {
	tenant  core.Tenant
	session core.SessionID
}

// New returns a Service.
func New(o Options) *Service {
	o.Observer = core.ObserverOrNone(o.Observer)
	return &Service{Options: o, forks: quota.New(quota.Limits{Total: 16, Owner: 4, User: 1, What: "fork"}), agents: core.NewCache[agentKey, core.SessionAgent](10_000)}
}

// publish notifies those who watch of what was written without err, which it returns.
func (s *Service) publish(ctx context.Context, events []core.Event, err error) error {
	if err == nil {
		s.Feed.Publish(context.WithoutCancel(ctx), events)
	}
	return err
}
