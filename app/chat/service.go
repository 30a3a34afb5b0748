package chat

import (
	"context"
	"log/slog"

	"bobbin/app/blobs"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/app/db/repositories"
	"bobbin/app/events"
)

// worker executes runs in this process.
type worker interface {
	// Begin accepts a run and executes it here if a slot is free: then accept gets the name
	// of this process for its lease, otherwise an empty one.
	Begin(ctx context.Context, accept func(worker string) (core.Accepted, error)) (core.Accepted, error)
	// Next lets the session's oldest queued run begin, if there is one.
	Next(ctx context.Context, session core.SessionID)
	Cancel(run core.RunID) bool
}

// ContextPlanner knows what a session's prompts are made of, and changes its summary as people wish.
type ContextPlanner interface {
	Report(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextReport, error)
	// Prompt returns the exact prompt that would be sent. It changes nothing.
	Prompt(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.PromptView, error)
	Summarize(ctx context.Context, tenant core.Tenant, id core.SessionID, focus string) (core.Summary, error)
	// CheckPin returns ErrContextFloor if prompts had no room left with the message pinned.
	CheckPin(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) error
	// StandingInstructions returns those of the session with their states, the oldest first.
	StandingInstructions(ctx context.Context, tenant core.Tenant, id core.SessionID) ([]core.StandingInstruction, error)
	// Where says where a message of the session is in its next prompt, and why.
	Where(ctx context.Context, tenant core.Tenant, id core.SessionID, message core.MessageID) (core.MessageLocation, error)
	// Turns says where the session's messages are in its next prompt, and how large the prompts of its
	// newest turns were.
	Turns(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextTurns, error)
	DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error)
	Edit(ctx context.Context, tenant core.Tenant, id core.SessionID, edit core.SummaryEdit) (core.Summary, error)
	// Restore makes an earlier version of the summary the one in use; 0 is none.
	Restore(ctx context.Context, tenant core.Tenant, id core.SessionID, version int) (core.Session, error)
	// Diff compares with the previous version if against is negative.
	Diff(ctx context.Context, tenant core.Tenant, id core.SessionID, version, against int) (core.SummaryDiff, error)
}

// instructionStore stores standing instructions that people add and change by hand.
type instructionStore interface {
	Add(ctx context.Context, tenant core.Tenant, in core.NewInstruction) (core.StandingInstruction, error)
	Edit(ctx context.Context, tenant core.Tenant, id core.InstructionID, in core.NewInstruction) (core.StandingInstruction, error)
	Remove(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.InstructionID) error
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
	ContextPlanner

	Sessions     core.SessionStore
	Messages     core.MessageStore
	Branches     core.BranchStore
	Summaries    core.SummaryStore
	Instructions instructionStore
	Aliases      *repositories.Aliases
	Slack        core.SlackThreadStore
	SlackPosts   core.SlackPostStore
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

// Service is the use cases, besides those of the ContextPlanner that it passes on. Safe for concurrent use.
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
