package ops

import (
	"context"
	"errors"
	"log/slog"

	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/wire"
)

// Admin calls do with what looks after keys and the audit log. It works on the database
// itself, also beside a server that runs on it.
func Admin(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*Service) error) (err error) {
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Migrate(ctx); err != nil {
		return err
	}
	s := wire.NewStores(database)
	return do(NewService(s.APIKeys, s.Audit))
}
