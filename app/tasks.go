package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/app/db"
)

// What the command line does without a whole Bobbin.

// Graph returns the agent graph, to be drawn.
func Graph() (*agents.Engine, error) { return agents.Blank() }

// Migrate applies the migrations that the database lacks and returns its version;
// with apply false it only looks.
func Migrate(ctx context.Context, cfg config.Config, logger *slog.Logger, apply bool) (v db.Versions, err error) {
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return db.Versions{}, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if apply {
		if err := database.Migrate(ctx); err != nil {
			return db.Versions{}, err
		}
	}
	return database.MigrationStatus(ctx)
}

// AgentContext returns the context and compaction settings of an agent, each with its
// origin.
func AgentContext(cfg config.Config, thresholdSet bool, name string) ([]contextwindow.Field, error) {
	set, err := newTools(cfg, time.Now, nil, nil)
	if err != nil {
		return nil, err
	}
	global := globalContext(cfg, thresholdSet)
	catalog, err := loadAgents(cfg, set, global, nil)
	if err != nil {
		return nil, err
	}
	agent, err := catalog.Get(name)
	if err != nil {
		return nil, err
	}
	fields, err := contextwindow.Explain(global, agent.Context)
	if err != nil {
		return nil, err
	}
	loop, err := contextwindow.ExplainLoop(agent.Context.Policy, agent.Compaction)
	return append(fields, loop...), err
}

// globalContext returns the context settings of all agents. The threshold counts
// only when it was set: its default is the presets' own.
func globalContext(cfg config.Config, thresholdSet bool) contextwindow.Global {
	g := contextwindow.Global{SummaryModel: cfg.ContextSummaryModel}
	if thresholdSet || cfg.ContextUsageThreshold != config.Default().ContextUsageThreshold {
		g.UsageThreshold = &cfg.ContextUsageThreshold
	}
	return g
}

// Agents returns the agents that are configured.
func Agents(cfg config.Config) ([]core.Agent, error) {
	set, err := newTools(cfg, time.Now, nil, nil)
	if err != nil {
		return nil, err
	}
	catalog, err := loadAgents(cfg, set, globalContext(cfg, false), nil)
	if err != nil {
		return nil, err
	}
	return catalog.List(), nil
}

// AgentNames returns the names of the agents, for the start-up lines.
func (a *App) AgentNames() string {
	var names []string
	for _, agent := range a.catalog.List() {
		names = append(names, agent.Name)
	}
	return strings.Join(names, ", ")
}
