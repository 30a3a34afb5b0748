package wire

import (
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/nodes"
	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/events"
	"bobbin/app/runs"
)

// Engine is what answers messages.
type Engine struct {
	*agents.Engine

	Compactor *compaction.Compactor
	Inspector *compaction.Inspector
	Titler    *chat.Titler // nil = sessions are not given titles
	Recorder  *runs.Recorder
}

// NewEngine builds what answers messages for the agents.
func NewEngine(d Deps, a Agents) (Engine, error) {
	profiles := agents.NewProfiles(a.Catalog, d.Models.Registry, a.Tools, a.Global)
	l := d.Config.Limits
	options := compaction.Options{
		Stores: compaction.Stores{Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Summaries: d.Stores.Summaries, Runs: d.Stores.Runs, Blobs: d.Stores.Blobs, Search: d.AgentSearch, Standing: d.Stores.Standing, Setups: d.Stores.Setups},
		Models: d.Models, LoadProfile: profiles.Profile, Counter: d.Counter, Calibrator: d.Models.Calibrator, Publisher: d.Feed,
		Logger: d.Logger, SummaryTime: l.SummaryTime, BackgroundTime: l.BackgroundSummaryTime, Grace: l.ShutdownGrace,
		Worker: d.Worker, Budget: d.Budget.Check, Observer: d.Telemetry,
	}
	keeper := compaction.New(options)
	e := Engine{Compactor: keeper, Recorder: runs.NewRecorder(d.Stores.Runs, d.Feed, d.Logger)}
	e.Inspector = &compaction.Inspector{Compactor: keeper, Preset: profiles.Preset}
	if d.Config.Titles {
		e.Titler = chat.NewTitler(chat.TitlerOptions{
			Sessions: d.Stores.Sessions, LoadProfile: profiles.Profile, Models: d.Models,
			Counter: d.Counter, Budget: d.Budget.Check, Feed: d.Feed, Logger: d.Logger,
		})
	}
	var err error
	e.Engine, err = agents.NewEngine(nodes.Deps{
		LoadProfile: profiles.RunProfile, Titler: e.Titler, Compactor: keeper, Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Tails: nodes.NewTailCache(),
		Runs: d.Stores.Runs, Journal: e.Recorder, Tools: a.Tools, Counter: d.Counter,
		Calibrator: d.Models.Calibrator, Logger: d.Logger,
		ToolLimits:   nodes.ToolLimits{Time: l.ToolTime, Output: int(l.ToolOutputBytes), Shown: int(l.ToolShownBytes)},
		ApprovalTime: l.ApprovalTime, Budget: d.Budget.Check, Observer: d.Telemetry,
	})
	return e, err
}

// NewDirectory returns the agents as clients see them.
func NewDirectory(a Agents, e Engine) *agents.Directory {
	return &agents.Directory{AgentCatalog: a.Catalog, Tools: a.Tools, Engine: e.Engine}
}

// NewOffer returns the models that callers may choose.
func NewOffer(d Deps, a Agents) *llm.Offer {
	return d.Models.Offer(func() []string { return AgentModels(a.Catalog.List()) })
}

// NewRuns builds what brings runs to their ends.
func NewRuns(d Deps, e Engine) *runs.Runner {
	return runs.New(runs.Options{
		Store: d.Stores.Runs, Messages: d.Stores.Messages, Execute: e.Execute, Journal: e.Recorder, Counter: d.Counter, Worker: d.Worker,
		Limits: runs.Limits{
			Concurrent: d.Config.Limits.ConcurrentRuns, RunTime: d.Config.Limits.RunTime,
			Grace: max(d.Config.Limits.ShutdownGrace, time.Nanosecond), // 0 would be the default, and here it means immediately
		},
		Logger: d.Logger, Compactor: e.Compactor, Observer: d.Telemetry, Signals: events.NewSignals(d.Bus, d.Logger),
	})
}

// NewChat builds the use cases of conversations.
func NewChat(d Deps, a Agents, e Engine, work *runs.Runner, files *blobs.Service) *chat.Service {
	l := d.Config.Limits
	o := chat.Options{
		Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Branches: d.Stores.Branches, Summaries: d.Stores.Summaries, Instructions: d.Stores.Standing, Aliases: d.Stores.Aliases, Slack: d.Stores.SlackThreads, SlackPosts: d.Stores.SlackPosts, Webhooks: d.Stores.Webhooks,
		Runs: d.Stores.Runs, Events: d.Stores.Events, Feed: d.Feed, Work: work,
		Agents: NewDirectory(a, e), FindModel: NewOffer(d, a).Get, Counter: d.Counter,
		Files: files, Inspector: e.Inspector, DefaultAgent: d.Config.DefaultAgent, Logger: d.Logger,
		Budget: d.Budget.Check, Stored: d.Stored, Observer: d.Telemetry, PrivateWebhooks: d.Config.Webhooks.AllowPrivate,
		Limits: chat.Limits{Message: int(l.MessageBytes), Result: int(l.ToolOutputBytes), Queued: l.QueuedRuns, Owned: l.RunsPerOwner, OfUser: l.RunsPerUser},
	}
	if d.Slack != nil {
		o.SlackApp = slackApp{d.Slack, d.SlackPosts}
	}
	return chat.New(o)
}
