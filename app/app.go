// Package app puts the parts of Bobbin together: New builds them, Run serves and
// drains. It is the only place where parts meet, and the same for the command
// line and for the end-to-end tests.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/agents"
	"bobbin/app/agents/catalog"
	"bobbin/app/agents/nodes"
	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/auth/jwt"
	"bobbin/app/api/handlers"
	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/embed"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/deliveries"
	"bobbin/app/events"
	"bobbin/app/folder"
	"bobbin/app/purge"
	"bobbin/app/retention"
	"bobbin/app/runs"
	"bobbin/app/spend"
	"bobbin/app/telemetry"
	"bobbin/app/titles"
	"bobbin/app/tools"
)

// Build is which program this is.
type Build = handlers.Build

// App is a Bobbin that was built and can be run once.
type App struct {
	cfg       config.Config
	log       *slog.Logger
	folder    *folder.Folder
	database  *db.DB
	repos     repos
	messages  messageLog
	bus       bus
	feed      *events.Feed
	counter   counter
	ruler     *tokens.Calibrator
	models    *llm.Registry
	choice    llm.Choice
	catalog   *catalog.Catalog
	files     *blobs.Service
	control   *compaction.Control
	runs      *runs.Service
	outbox    *deliveries.Service
	drained   chan struct{} // closed when runs has ended
	keeper    *compaction.Keeper
	retention *retention.Worker
	name      *replicaName
	version   string
	worker    string // names this process in leases
	budget    *spend.Limiter
	telemetry *telemetry.Telemetry
	toolset   *tools.Set
	named     map[string]bool // models that the configuration names
	flush     func()          // sends the last traces
	titles    *titles.Titler  // nil = sessions are not given titles
	server    *api.Server
	embedder  embed.Embedder // of memories
	apiKeys   *auth.Stored   // of the database
	tokenKeys *jwt.Keys      // of end users' tokens; nil = none are taken
	token     string
}

// counter counts tokens in cl100k_base, for all parts (tokens.Counter).
type counter interface {
	Text(s string) int
	Message(m core.Message) int
	Tools(list []llm.ToolSpec) int
}

// messageLog is the message log as the engine reads it (repositories.Messages).
type messageLog interface {
	GetMessagesAfter(ctx context.Context, scope core.Scope, id core.SessionID, after core.MessageID) ([]core.Message, error)
	Pinned(ctx context.Context, scope core.Scope, id core.SessionID) ([]core.Message, error)
	CountOnPath(ctx context.Context, scope core.Scope, id core.SessionID) (int, error)
}

// repos are the repositories.
type repos struct {
	sessions     *repositories.Sessions
	messages     *repositories.Messages
	branches     *repositories.Branches
	summaries    *repositories.Summaries
	runs         *repositories.Runs
	events       *repositories.Events
	calibrations *repositories.Calibrations
	modelCalls   *repositories.ModelCalls
	keys         *repositories.IdempotencyKeys
	memories     *repositories.Memories
	search       *repositories.Search
	blobs        *repositories.Blobs
	deliveries   *repositories.Deliveries
}

// New builds a Bobbin: it takes the data folder, opens the database and brings its
// schema up to date, loads the agents, and finds the default model. Close it when
// it is not run. Errors say what to do.
func New(ctx context.Context, cfg config.Config, build Build, logger *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: logger, version: build.Version, token: auth.NewToken(), drained: make(chan struct{})}
	if err := a.build(ctx, build); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// build makes the parts in the order in which they need each other.
func (a *App) build(ctx context.Context, build Build) error {
	var err error
	if a.folder, err = folder.Hold(ctx, a.cfg.DataDir); err != nil {
		return err
	}
	if err := a.openTokenKeys(ctx); err != nil {
		return err
	}
	if err := a.openStorage(ctx); err != nil {
		return err
	}
	if a.telemetry, err = a.newTelemetry(ctx, build); err != nil {
		return err
	}
	if a.counter, err = tokens.NewCounter(); err != nil {
		return fmt.Errorf("token counter: %w", err)
	}
	if err := a.openModels(ctx); err != nil {
		return err
	}
	if a.embedder, err = a.openEmbedder(); err != nil {
		return err
	}
	a.budget = a.newLimiter(ctx)
	if err := a.nameProcess(ctx); err != nil {
		return err
	}
	engine, keeper, journal, err := a.buildAgents()
	if err != nil {
		return err
	}
	a.files = a.buildFiles()
	a.outbox = a.buildDeliveries()
	a.runs = a.buildRuns(engine, journal)
	service := a.buildChat(keeper)
	purges := a.buildPurge(service)
	a.retention = a.buildRetention(purges)
	a.server = a.buildServer(engine, service, purges, build) //nolint:contextcheck // requests bring their own
	return nil
}

// openStorage opens the database, the repositories, and the feed over them.
func (a *App) openStorage(ctx context.Context) error {
	var err error
	if a.database, err = db.Open(ctx, a.cfg.Database.URL.Reveal(), a.log); err != nil {
		return err
	}
	if err := a.database.Migrate(ctx); err != nil {
		return err
	}
	g := a.database.Gorm
	a.repos = repos{
		sessions: repositories.NewSessions(g), messages: repositories.NewMessages(g), branches: repositories.NewBranches(g), summaries: repositories.NewSummaries(g),
		runs: repositories.NewRuns(g), events: repositories.NewEvents(g), calibrations: repositories.NewCalibrations(g),
		modelCalls: repositories.NewModelCalls(g),
		keys:       repositories.NewIdempotencyKeys(g),
		memories:   repositories.NewMemories(g), search: repositories.NewSearch(g),
	}
	a.repos.blobs, a.repos.deliveries = repositories.NewBlobs(g), repositories.NewDeliveries(g)
	a.messages = a.repos.messages
	return a.openFeed(ctx)
}

// buildAgents loads the agents and builds what executes them.
func (a *App) buildAgents() (*agents.Engine, *compaction.Keeper, *runs.Journal, error) {
	set, err := newTools(a.cfg, time.Now, a.repos.messages, a.repos.search)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("tools: %w", err)
	}
	global := globalContext(a.cfg, false)
	if a.catalog, err = loadAgents(a.cfg, set, global, a.models); err != nil {
		return nil, nil, nil, err
	}
	if _, err := a.catalog.Get(a.cfg.DefaultAgent); err != nil {
		return nil, nil, nil, core.Errorf(core.ErrInvalid, "default_agent: %s", err)
	}
	return a.buildEngine(set, global)
}

// buildEngine builds what executes the agents of the catalog with these tools.
func (a *App) buildEngine(set *tools.Set, global contextwindow.Global) (*agents.Engine, *compaction.Keeper, *runs.Journal, error) {
	if a.telemetry == nil { // an engine without a server: nobody reads what it counts
		a.telemetry = telemetry.New(telemetry.Options{})
	}
	a.toolset, a.named = set, a.namedModels()
	profiles := agents.NewProfiles(a.catalog, a.models, set, global)
	options := compaction.Options{
		Stores: compaction.Stores{Sessions: a.repos.sessions, Messages: a.messages, Summaries: a.repos.summaries, Runs: a.repos.runs, Blobs: a.repos.blobs},
		Models: a.models, Profiles: profiles, Counter: a.counter, Calibrator: a.ruler, Publisher: a.feed,
		Logger: a.log, SummaryTime: a.cfg.Limits.SummaryTime, BackgroundTime: a.cfg.Limits.BackgroundSummaryTime, Grace: a.cfg.Limits.ShutdownGrace,
		Worker: a.worker, Budget: a.budget, Observer: a.telemetry,
	}
	options.Compactor = compaction.NewModelCompactor(options)
	keeper := compaction.New(options)
	a.keeper, a.control = keeper, compaction.NewControl(keeper, compaction.ControlStores{
		Messages: a.repos.messages, Summaries: a.repos.summaries, Sessions: a.repos.sessions, Policies: profiles,
	})
	a.titles = a.newTitler(profiles)
	journal := runs.NewJournal(a.repos.runs, a.outlet(), a.log)
	engine, err := agents.NewEngine(agents.Options{
		Profiles: profiles, Keeper: keeper, Sessions: a.repos.sessions, Messages: a.messages, Executions: a.repos.runs, Approvals: a.repos.runs,
		Journal: journal, Tools: set, Counter: a.counter, Calibrator: a.ruler, Logger: a.log,
		ToolLimits:   nodes.ToolLimits{Time: a.cfg.Limits.ToolTime, Output: int(a.cfg.Limits.ToolOutputBytes), Shown: int(a.cfg.Limits.ToolShownBytes)},
		ApprovalTime: a.cfg.Limits.ApprovalTime,
		Budget:       a.budget, Observer: a.telemetry,
	})
	return engine, keeper, journal, err
}

// buildRuns builds what brings runs to their ends.
func (a *App) buildRuns(engine *agents.Engine, journal *runs.Journal) *runs.Service {
	return runs.New(runs.Options{
		Store: a.repos.runs, Messages: a.repos.messages, Engine: engine, Journal: journal, Counter: a.counter, Worker: a.worker,
		Limits: runs.Limits{
			Concurrent: a.cfg.Limits.ConcurrentRuns, RunTime: a.cfg.Limits.RunTime,
			Grace: max(a.cfg.Limits.ShutdownGrace, time.Nanosecond), // 0 would be the default, and here it means at once
		},
		Logger: a.log, Answered: a.answered(), Observer: a.telemetry, Signals: events.NewSignals(a.bus, a.log),
		Ended: func(run core.Run) { a.keeper.Soon(run.Scope(), run.SessionID) },
	})
}

// buildChat builds the use cases.
func (a *App) buildChat(keeper *compaction.Keeper) *chat.Service {
	return chat.New(chat.Options{
		Sessions: a.repos.sessions, Messages: a.repos.messages, Branches: a.repos.branches, Runs: a.repos.runs, Events: a.repos.events, Feed: a.outlet(), Work: a.runs,
		Agents: a.catalog, Models: a.models, Counter: a.counter, Files: a.files, Context: keeper, Control: a.control,
		DefaultAgent: a.cfg.DefaultAgent, Worker: a.worker, Logger: a.log,
		Budget: a.budget, Observer: a.telemetry, PrivateWebhooks: a.cfg.Webhooks.AllowPrivate,
		Limits: chat.Limits{Message: int(a.cfg.Limits.MessageBytes), Queued: a.cfg.Limits.QueuedRuns, Owned: a.cfg.Limits.RunsPerOwner, OfUser: a.cfg.Limits.RunsPerUser},
	})
}

// buildServer builds the HTTP surface.
func (a *App) buildServer(engine *agents.Engine, service *chat.Service, purges *purge.Service, build Build) *api.Server {
	l := a.cfg.Limits
	return api.New(api.Options{
		Services: handlers.Services{
			Chat: service, Sessions: a.repos.sessions, Messages: a.repos.messages, Runs: a.repos.runs,
			Files: a.files, Blobs: a.repos.blobs,
			Summaries: a.repos.summaries, Agents: agents.NewDirectory(a.catalog, engine),
			Memories: a.buildMemories(), Search: a.repos.search, Transfer: a.buildTransfer(), Usage: a.repos.modelCalls,
			Deliveries: a.outbox,
		},
		Keys:    a.repos.keys,
		Auth:    a.buildAuth(),
		Checks:  a.checks(),
		Purge:   purges,
		Metrics: handlers.MetricsOptions{Exposition: a.telemetry, Open: a.cfg.Metrics.Open}, Observer: a.telemetry,
		Build: build, Origins: a.cfg.Server.CORSOrigins, Ready: a.runs.Ready(), Work: a.drained,
		Limits: api.Limits{
			BodyBytes: int64(l.BodyBytes), ImportBytes: int64(l.ImportBytes), FileBytes: int64(a.cfg.Files.Bytes), FilesPerMessage: a.cfg.Files.PerMessage, Wait: l.WaitTime, Streams: l.OpenStreams, StreamsPerOwner: l.OpenStreamsPerOwner, StreamsPerUser: l.OpenStreamsPerUser,
			PerSecond: l.RequestsPerSecond, UserPerSecond: l.UserRequests,
			Grace: l.ShutdownGrace + answerGrace,
		},
		Logger: a.log,
	})
}

// Listen opens the configured address and writes it into the data folder; an error
// says what to do.
func (a *App) Listen(ctx context.Context) (net.Listener, error) {
	if err := a.checkReach(ctx); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.cfg.Addr)
	if err != nil {
		return nil, core.Errorf(core.ErrUnavailable, "cannot listen on %s: %v; choose another address with --addr", a.cfg.Addr, err)
	}
	// Before anybody is told that it is ready: the folder must say where.
	if err := a.announce(l); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Choice says which model is the default, and why.
func (a *App) Choice() llm.Choice { return a.choice }

// Token lets a client in as this machine's own user.
func (a *App) Token() string { return a.token }

// Statements returns how many SQL statements were executed so far.
func (a *App) Statements() int64 { return a.database.Statements() }

// Run serves on the listener until ctx ends, then stops in order: no new
// requests, time for the work in hand, the rest handed back to be taken up after
// the restart. It closes everything that New opened.
func (a *App) Run(ctx context.Context, listener net.Listener) error {
	if err := a.announce(listener); err != nil {
		return errors.Join(err, listener.Close(), a.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(a.drained)
		return a.runs.Run(ctx)
	})
	group.Go(func() error { return a.server.Serve(ctx, listener) }) // lets nobody in before runs are taken over
	group.Go(func() error { return a.outbox.Run(ctx) })
	group.Go(func() error { return a.serveOthers(ctx) })
	group.Go(func() error { return a.runTitles(ctx) })
	group.Go(func() error { return a.keeper.Run(ctx) })
	group.Go(func() error { return a.saveCalibrations(ctx) })
	group.Go(func() error { return a.files.Run(ctx) })
	group.Go(func() error { return a.fillSearch(ctx) })
	group.Go(func() error { return a.sweepKeys(ctx) })
	group.Go(func() error { return a.retention.Run(ctx) })
	group.Go(func() error { return a.apiKeys.Run(ctx) })
	group.Go(func() error { return a.name.keep(ctx) })
	group.Go(func() error { return a.keepTokenKeys(ctx) })
	group.Go(func() error {
		// Loading the vocabulary takes a fifth of a second: not from the first message.
		a.counter.Text("warm")
		return nil
	})
	return errors.Join(group.Wait(), a.Close())
}

// announce writes where this process can be reached into the data folder.
func (a *App) announce(listener net.Listener) error {
	return a.folder.Announce(folder.Server{URL: "http://" + listener.Addr().String(), PID: pid(), Token: a.token})
}

// Close lets go of what New opened. Run does it itself.
func (a *App) Close() error {
	var errs []error
	if a.bus != nil {
		a.bus.Close()
	}
	if a.flush != nil {
		a.flush()
	}
	if a.name != nil {
		errs = append(errs, a.name.release())
	}
	if a.database != nil {
		errs = append(errs, a.database.Close())
	}
	if a.folder != nil {
		errs = append(errs, a.folder.Release())
	}
	return errors.Join(errs...)
}
