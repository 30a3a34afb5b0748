// Package app is the server: New builds it from the parts of package wire, Run serves and
// drains. It is the same for the command line and for the end-to-end tests.
package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/api"
	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/api/openai"
	"bobbin/app/blobs"
	"bobbin/app/chat/meaning"
	"bobbin/app/chat/memories"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/deliveries"
	"bobbin/app/events"
	"bobbin/app/purge"
	"bobbin/app/runs"
	"bobbin/app/slack"
	"bobbin/app/telemetry"
	"bobbin/app/wire"
)

// Build is which program this is.
type Build = handlers.Build

// App is a server that was built and can be run once.
type App struct {
	resources
	wire.Deps

	start     datadir.StartOptions // how the process was started
	version   string
	agents    wire.Agents
	engine    wire.Engine
	embedder  llm.Embedder
	meanings  *meaning.Embedder // embeds messages in the background; nil = there is no embedding model
	memories  *memories.Service
	files     *blobs.Service
	outbox    *deliveries.Service
	runs      *runs.Runner
	purges    *purge.Service
	apiKeys   *auth.Stored   // of the database
	tokenKeys *auth.Keys     // of end users' tokens; nil = none are accepted
	token     string         // lets this machine's own user in
	drained   chan struct{}  // closed when runs has ended
	slack     *slack.Service // nil = Slack is off
	posts     *slack.Outbox  // to threads of Slack; likewise
	server    *api.Server
}

// New builds a server: it takes the data folder, opens the database and brings its
// schema up to date, loads the agents, and finds the default model. Close it when
// it is not run. Errors say what to do.
func New(ctx context.Context, cfg config.Config, build Build, logger *slog.Logger) (*App, error) {
	r := &resources{}
	a, err := openApp(ctx, r, cfg, build, logger)
	if err != nil {
		return nil, errors.Join(explainFullDisk(err), r.Close())
	}
	return a, nil
}

// openApp builds the parts in the order in which they need each other. What it opens is in r,
// also when it fails.
func openApp(ctx context.Context, r *resources, cfg config.Config, build Build, log *slog.Logger) (*App, error) {
	var err error
	if r.folder, err = datadir.Hold(ctx, cfg.DataDir); err != nil {
		return nil, err
	}
	tokenKeys, err := openTokenKeys(ctx, cfg.Auth.JWT, log)
	if err != nil {
		return nil, err
	}
	cfg.Limits = fitRuns(cfg.Limits, log)
	space, err := openSpace(cfg, r.folder)
	if err != nil {
		return nil, err
	}
	d, err := openDeps(ctx, r, wire.Deps{Config: cfg, Logger: log, Labels: wire.NewLabels()}, build, space)
	if err != nil {
		return nil, err
	}
	uncharged, prices, err := wire.OpenEmbedder(cfg, d.Models, log)
	if err != nil {
		return nil, err
	}
	embedder := wire.ChargeEmbedder(d, uncharged, prices)
	var meanings *meaning.Embedder
	d.Search, meanings = wire.NewMeaning(d, uncharged, prices)
	d.AgentSearch, d.Searches = core.NewAgentSearch(d.Search), handlers.NewSearchPlaces()
	d.AgentSearch.Place = d.Searches.Place
	d.Stored = newStored(d)
	facts := wire.NewMemories(d, embedder)
	set := wire.NewTools(cfg, wire.ToolParts{Messages: d.Stores.Messages, Search: d.AgentSearch, Memories: facts, Program: build.Program, Logger: log})
	agents, err := wire.LoadAgents(cfg, set, d.Models)
	if err != nil {
		return nil, err
	}
	if _, err := agents.Catalog.Get(cfg.DefaultAgent); err != nil {
		return nil, core.Errorf(core.ErrInvalid, "default_agent: %s", err)
	}
	if name := cfg.Slack.Agent; name != "" {
		if _, err := agents.Catalog.Get(name); err != nil {
			return nil, core.Errorf(core.ErrInvalid, "slack.agent: %s", err)
		}
	}
	d.Labels.Set(cfg, d.Models, agents)
	list := agents.Catalog.List()
	wire.WarnOfAgents(ctx, d, list)
	a := &App{
		resources: *r, Deps: d, version: build.Version, agents: agents, embedder: embedder, meanings: meanings, memories: facts, outbox: wire.NewDeliveries(d),
		tokenKeys: tokenKeys, token: auth.NewToken(), drained: make(chan struct{}),
	}
	return a, a.buildServices(build, space) //nolint:contextcheck // requests bring their own
}

// openDeps opens what all parts share, besides what d has.
func openDeps(ctx context.Context, r *resources, d wire.Deps, build Build, space handlers.Space) (wire.Deps, error) {
	cfg, log := d.Config, d.Logger
	var err error
	if r.storage, err = wire.OpenStorage(ctx, cfg, log); err != nil {
		return d, err
	}
	d.Database, d.Stores = r.storage.DB, wire.NewStores(r.storage.DB)
	d.Budget = wire.NewBudget(cfg, d.Stores)
	if r.bus, err = wire.OpenBus(ctx, cfg.NATS, log); err != nil {
		return d, err
	}
	d.Bus, d.Feed = r.bus, wire.NewFeed(cfg.NATS, r.bus, d.Stores, space.Memory, log)
	estimates := func() map[string]tokens.Estimate { return d.Models.Calibrator.Estimates() }
	d.Telemetry, err = wire.NewTelemetry(ctx, d, telemetry.Build{Version: build.Version, Commit: build.Commit, Go: build.Go}, estimates)
	r.flush = func() { wire.Flush(ctx, d.Telemetry, log) }
	if err != nil {
		return d, err
	}
	d.Counter = tokens.NewCounter()
	if d.Models, err = wire.OpenModels(ctx, cfg, wire.ModelOptions{Counter: d.Counter, Logger: log, Observe: d.Telemetry.Model}); err != nil {
		return d, err
	}
	rows, err := d.Stores.Calibrations.All(ctx)
	if err != nil {
		return d, fmt.Errorf("load calibrations: %w", err)
	}
	d.Models.Calibrator.Restore(rows)
	if _, err := d.Models.Get(""); err != nil {
		return d, fmt.Errorf("default model: %w", err)
	}
	name := cfg.Replica.Name // of this process in leases
	if name == "" {
		if name, err = r.folder.Worker(); err != nil {
			return d, err
		}
	}
	r.name, d.Worker = db.OpenReplicaName(ctx, d.Database, log, name)
	if !cfg.NATS.Shared() {
		r.name.WarnOfOthers(ctx)
	}
	return d, nil
}

// buildServices builds what serves requests.
func (a *App) buildServices(build Build, space handlers.Space) error {
	d := a.Deps
	var err error
	if a.engine, err = wire.NewEngine(d, a.agents); err != nil {
		return err
	}
	a.files = wire.NewFiles(d, build.Program)
	a.runs = wire.NewRuns(d, a.engine)
	l, files, s := d.Config.Limits, d.Config.Files, d.Stores
	if d.Config.Slack.Enabled() {
		if d.Slack, err = slack.NewClients(d.Config.Slack, s.SlackInstallations); err != nil {
			return err
		}
		a.posts = slack.NewOutbox(slack.OutboxOptions{
			Threads: s.SlackThreads, Posts: s.SlackPosts, Sessions: s.Sessions, Messages: s.Messages, Feed: d.Feed, Clients: d.Slack, Worker: d.Worker, Logger: d.Logger,
		})
		d.SlackPosts = a.posts
	}
	service := wire.NewChat(d, a.agents, a.engine, a.runs, a.files)
	var fromSlack map[string]http.HandlerFunc
	if d.Slack != nil {
		a.slack = slack.New(slack.Options{
			Settings: d.Config.Slack, Clients: d.Slack, Chat: service, Transfer: wire.NewTransfer(d, a.engine), Files: a.files, Inbox: s.SlackInbox, Threads: s.SlackThreads,
			Posts: s.SlackPosts, Sessions: s.Sessions, Runs: s.Runs, Worker: d.Worker, Observer: d.Telemetry, Logger: d.Logger,
		})
		fromSlack = a.slack.Routes()
	}
	a.purges = wire.NewPurge(d, service, a.slack, a.posts)
	a.apiKeys = auth.NewStored(d.Stores.APIKeys, d.Logger)
	limits := api.DefaultLimits()
	limits.BodyBytes, limits.ImportBytes, limits.FileBytes, limits.FilesPerMessage = int64(l.BodyBytes), int64(l.ImportBytes), int64(files.Bytes), files.PerMessage
	limits.Streams, limits.StreamsPerOwner, limits.StreamsPerUser = l.OpenStreams, l.OpenStreamsPerOwner, l.OpenStreamsPerUser
	limits.PerSecond, limits.UserPerSecond, limits.Wait, limits.Grace = l.RequestsPerSecond, l.UserRequests, l.WaitTime, l.ShutdownGrace+answerGrace
	directory := wire.NewDirectory(a.agents, a.engine)
	a.server = api.New(api.Options{
		Slack: fromSlack, Services: handlers.Services{
			Chat: service, Sessions: s.Sessions, Messages: s.Messages, Runs: s.Runs, Files: a.files, Blobs: s.Blobs,
			Summaries: s.Summaries, Agents: directory, Graph: directory.Graph, Mermaid: directory.Mermaid, Models: wire.NewOffer(a.Deps, a.agents).List, Memories: a.memories,
			Search: a.Search, Searches: a.Searches, Transfer: wire.NewTransfer(a.Deps, a.engine), Usage: s.ModelCalls, Deliveries: s.Deliveries, Redeliver: a.outbox.Retry, Purges: a.purges, ReloadAgents: a.ReloadAgents,
		},
		OpenAI: openai.API{Models: a.Models.Names, EmbeddingModel: a.Config.EmbeddingModel, Embedder: a.embedder, CountTokens: a.Counter.Text},
		Keys:   s.Keys, Auth: wire.NewAuth(a.Config, a.apiKeys, a.tokenKeys, a.token), Checks: a.readyChecks(),
		Metrics: a.Telemetry.Handler(), OpenMetrics: a.Config.Metrics.Open, Observer: a.Telemetry,
		Build: build, Origins: a.Config.Server.CORSOrigins, Framing: a.Config.Server.WidgetOrigins, Ready: a.runs.Ready(), Work: a.drained, Overloaded: a.runs.IsOverloaded,
		Limits: limits, Logger: a.Logger, Space: space,
	})
	return nil
}

// answerGrace is how much later requests may end than the runs they wait for.
const answerGrace = 5 * time.Second

// API returns what the server of the API is made of, for tests that serve it with other limits.
func (a *App) API() api.Options { return a.server.Options }

// Embedding says what makes memories searchable, for the start-up lines.
func (a *App) Embedding() string { return wire.DescribeEmbedder(a.embedder) }

// Token lets a client in as this machine's own user.
func (a *App) Token() string { return a.token }

// AgentNames returns the names of the agents, for the start-up lines.
func (a *App) AgentNames() string {
	var names []string
	for _, agent := range a.agents.Catalog.List() {
		names = append(names, agent.Name)
	}
	return strings.Join(names, ", ")
}

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
	group.Go(func() error {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		go func() {
			<-a.drained
			stop()
		}()
		return a.agents.Tools.Run(ctx)
	})
	group.Go(func() error { return a.server.Serve(ctx, listener) }) // lets nobody in before runs are taken over
	// Each ends soon after its context.
	loops := []func(context.Context) error{
		a.outbox.Run, a.engine.Titler.Run, a.engine.Compactor.Run, a.files.Run, a.purges.Run,
		a.apiKeys.Run, a.name.Keep, func(ctx context.Context) error { return core.Every(ctx, calibrationInterval, a.saveCalibration) }, a.indexMessages, a.sweepKeys,
	}
	if a.Config.NATS.Shared() {
		loops = append(loops, a.Feed.Serve)
	}
	if a.meanings != nil {
		loops = append(loops, a.meanings.Run)
	}
	if a.slack != nil {
		loops = append(loops, a.slack.Run, a.posts.Run)
	}
	if a.tokenKeys != nil {
		loops = append(loops, a.tokenKeys.Run)
	}
	for _, run := range loops {
		group.Go(func() error { return run(ctx) })
	}
	err := group.Wait()
	a.saveCalibration(ctx) // runs that ended while the server stopped have measured, too
	return errors.Join(err, a.Close())
}

// resources are what a process holds and must give back. Fields are nil until opened.
type resources struct {
	folder  *datadir.Folder
	storage *wire.Storage
	bus     events.Bus
	flush   func() // sends the last traces
	name    *db.ReplicaName
}

// Close gives back what was opened. Run does it itself.
func (r *resources) Close() error {
	var errs []error
	if r.bus != nil {
		r.bus.Close()
	}
	if r.flush != nil {
		r.flush()
	}
	if r.name != nil {
		errs = append(errs, r.name.Release())
	}
	if r.storage != nil {
		errs = append(errs, r.storage.Close())
	}
	if r.folder != nil {
		errs = append(errs, r.folder.Release())
	}
	return errors.Join(errs...)
}

// ReloadAgents reads the agents' files again. What begins from now on has the new agents;
// runs at work keep those that they began with. It returns what became of each file: one that
// is broken keeps the agent that it had.
func (a *App) ReloadAgents(ctx context.Context) ([]core.AgentFile, error) {
	files, err := a.agents.Catalog.Reload(a.Config.AgentsDir, a.agents.Known, a.Config.DefaultAgent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, core.Errorf(core.ErrUnprocessable, "nothing was changed: there is no folder %s; create it, or set agents_dir", a.Config.AgentsDir)
	case err != nil:
		return nil, core.Errorf(core.ErrUnprocessable, "nothing was changed: %v", err)
	}
	a.agents.Tools.Use(a.agents.Catalog.List())
	a.Labels.Set(a.Config, a.Models, a.agents)
	for _, f := range files {
		switch f.Change {
		case core.AgentUnchanged:
		case core.AgentBroken:
			a.Logger.WarnContext(ctx, "agent's file is broken, the agent stays as it was", "file", f.File, "agent", f.Agent, "tool", f.Tool, "problems", f.Problems)
		case core.AgentAdded, core.AgentChanged, core.AgentRemoved:
			a.Logger.InfoContext(ctx, "agent reloaded", "file", f.File, "agent", f.Agent, "tool", f.Tool, "change", f.Change, "version", f.Version)
		}
	}
	wire.WarnOfAgents(ctx, a.Deps, a.agents.Catalog.List())
	return files, nil
}
