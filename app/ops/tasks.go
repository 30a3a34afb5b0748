// Package ops is what operators do from the command line, without a server: diagnose an
// installation, migrate and copy a database, look after keys, and check agents'
// files.
package ops

import (
	"context"
	"errors"
	"log/slog"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/wire"
)

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

// Agents returns the agents that are configured.
func Agents(cfg config.Config) ([]core.Agent, error) {
	agents, err := loadAgents(cfg)
	if err != nil {
		return nil, err
	}
	return agents.Catalog.List(), nil
}

// loadAgents reads the agents' files without looking at their models.
func loadAgents(cfg config.Config) (wire.Agents, error) {
	set, err := wire.NewTools(cfg, wire.ToolParts{})
	if err != nil {
		return wire.Agents{}, err
	}
	return wire.LoadAgents(cfg, set, false, wire.Models{})
}
