package ops

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/wire"
)

// SlackInstallations returns where the Slack app is installed, with the tokens as they are
// stored.
func SlackInstallations(ctx context.Context, cfg config.Config, logger *slog.Logger) (list []core.SlackInstallation, err error) {
	if path, embedded := wire.SQLiteFile(cfg); embedded {
		if _, err := os.Stat(path); err != nil {
			return nil, nil // a look makes no database
		}
	}
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if v, err := database.MigrationStatus(ctx); err != nil || v.Pending() {
		return nil, err // the server migrates when it starts
	}
	return repositories.NewSlackInstallations(database.Gorm).List(ctx)
}
