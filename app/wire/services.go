package wire

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/nodes"
	"bobbin/app/api/auth"
	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/memories"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/config"
	"bobbin/app/core/llm"
	"bobbin/app/db/repositories"
	"bobbin/app/deliveries"
	"bobbin/app/events"
	"bobbin/app/extract"
	"bobbin/app/purge"
	"bobbin/app/runs"
	"bobbin/app/slack"
)

// NewFiles builds the use cases of images and files. Program is the file of this program,
// which reads documents as a child process; empty = not known.
func NewFiles(d Deps, program string) *blobs.Service {
	f := d.Config.Files
	return blobs.New(blobs.Options{
		Store: d.Stores.Blobs, Sessions: d.Stores.Sessions, Counter: d.Counter, ReadText: extract.NewReader(program).Read, Stored: d.Stored, Logger: d.Logger,
		Limits: blobs.Limits{Bytes: int64(f.Bytes), PerMessage: f.PerMessage, Total: int64(f.TotalBytes), User: int64(f.UserBytes), Types: f.Types},
	})
}

// NewMemories builds the use cases of memories.
func NewMemories(d Deps, e llm.Embedder) *memories.Service {
	matches := core.MatchesMeaning
	if e.Model() == llm.HashingModel {
		matches = core.MatchesWords
	}
	return memories.New(memories.Options{
		Store: d.Stores.Memories, Embedder: e, Matches: matches, Stored: d.Stored, Logger: d.Logger,
	})
}

// NewDeliveries builds what notifies webhooks of how runs end. It reads from the feed that
// there is something to deliver.
func NewDeliveries(d Deps) *deliveries.Service {
	w := d.Config.Webhooks
	newWork := make(chan struct{}, 1)
	d.Feed.Notify(newWork, func(e core.Event) bool {
		data, ok := e.Data.(core.RunData)
		return ok && data.Delivers
	})
	o := deliveries.Options{
		NewWork: newWork,
		Store:   d.Stores.Deliveries, Feed: d.Feed, Worker: d.Worker, Concurrent: w.Concurrent, Grace: d.Config.Limits.ShutdownGrace,
		Logger: d.Logger, Observer: d.Telemetry,
		SendWebhook: deliveries.NewSender(deliveries.SenderOptions{
			Runs: d.Stores.Runs, Messages: d.Stores.Messages, Secret: w.Secret.Reveal(),
			AllowPrivate: w.AllowPrivate, Time: w.Time, Logger: d.Logger,
		}).Send,
	}
	if d.Config.NATS.Shared() {
		o.Signals = events.NewSignals(d.Bus, d.Logger)
	}
	return deliveries.New(o)
}

// NewPurge builds what removes sessions, users and what was kept long enough. In and out are nil if
// Slack is off.
func NewPurge(d Deps, service *chat.Service, in *slack.Service, out *slack.Outbox) *purge.Service {
	o := purge.Options{
		Store: repositories.NewPurges(d.Database.Gorm), Deletions: repositories.NewDeletions(d.Database.Gorm), Sessions: d.Stores.Sessions,
		KeepEvents: d.Config.Retention.Events, KeepArchived: d.Config.Retention.ArchivedSessions, Observer: d.Telemetry,
		CompactFiles: d.Database.Compact, Publisher: d.Feed, Logger: d.Logger, Audit: d.Stores.Audit, Worker: d.Worker,
		CancelRun: func(ctx context.Context, tenant core.Tenant, id core.RunID) error { // of this process and of others
			_, err := service.Cancel(ctx, tenant, id)
			return err
		},
	}
	if out != nil {
		o.DeletePosts = out.PurgePosts
	}
	if in != nil {
		o.ForgetUser = in.ForgetUser
	}
	return purge.New(o)
}

// NewTransfer builds what brings histories in and sessions out.
func NewTransfer(d Deps, e Engine) *transfer.Service {
	s := d.Stores
	return transfer.New(transfer.Options{
		Sessions: s.Sessions, Messages: s.Messages, Summaries: s.Summaries, Instructions: s.Standing, Feed: d.Feed, Counter: d.Counter, Added: e.Compactor.Enqueue, Worker: d.Worker,
		Users: transfer.UserStores{
			Sessions: s.Sessions, Runs: s.Runs, Memories: s.Memories, Blobs: s.Blobs, Usage: s.ModelCalls, More: repositories.NewPurges(d.Database.Gorm),
		},
		Limits: TransferLimits(d.Config), Stored: d.Stored,
	})
}

// TransferLimits returns the bounds of imports and exports.
func TransferLimits(cfg config.Config) transfer.Limits {
	l := cfg.Limits
	return transfer.Limits{
		Message: int(l.MessageBytes), Output: int(l.ToolOutputBytes), Shown: int(l.ToolShownBytes),
		Line:   6*int(max(l.MessageBytes, l.ToolOutputBytes)) + 1<<20, // a byte may be six in JSON: whatever is exported can be imported
		Import: int64(l.ImportBytes), Messages: l.ImportMessages,
	}
}

// NewAuth builds what says who makes a request. TokenKeys are those of end users' tokens;
// nil = none are accepted. The local token admits this machine's own user.
func NewAuth(cfg config.Config, stored *auth.Stored, tokenKeys *auth.Keys, localToken string) *auth.Authenticator {
	var keys []auth.Key
	for _, k := range cfg.Auth.Keys {
		rights := core.ReadWrite
		if slices.Contains(cfg.Metrics.Keys, k.Name) {
			rights |= core.CanMetrics
		}
		if sum, ok := k.Sum(); ok {
			keys = append(keys, auth.HashedKey(k.Name, sum, rights))
		}
	}
	o := auth.Options{
		Keys: keys, Stored: stored, Required: cfg.Auth.Required, LocalToken: localToken,
		GuessesPerMinute: cfg.Limits.GuessesPerMinute, Proxies: cfg.Server.Proxies(),
	}
	if tokenKeys != nil {
		j := cfg.Auth.JWT
		rights, _ := core.ParseRights(j.Scopes) // Validate has refused others
		o.VerifyToken = auth.NewVerifier(tokenKeys, auth.VerifierOptions{
			Issuer: j.Issuer, Audience: j.Audience, Owner: j.Owner, OwnerClaim: j.OwnerClaim, UserClaim: j.UserClaim,
			Rights: rights, ScopeClaim: j.ScopeClaim, Leeway: j.Leeway, MaxLife: j.MaxLife,
		}).Identify
	}
	return auth.New(o)
}

// NewTokenKeys returns the keys of end users' tokens, which are not fetched yet.
func NewTokenKeys(j config.JWT, log *slog.Logger) *auth.Keys {
	return auth.NewKeys(auth.KeyOptions{URL: j.JWKSURL, File: j.JWKSFile, Refresh: j.Refresh, Logger: log})
}

type slackApp struct {
	*slack.Clients
	*slack.Outbox
}

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
