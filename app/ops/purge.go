package ops

import (
	"context"
	"errors"
	"log/slog"

	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/db"
	"bobbin/app/purge"
	"bobbin/app/wire"
)

// Purge calls do with what removes sessions and users, in this process. It takes
// the data folder meanwhile: ErrConflict when a server holds it, which has to do the
// work itself then.
func Purge(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*purge.Service) error) (err error) {
	held, err := datadir.Hold(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	storage, err := wire.OpenStorage(ctx, cfg, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, storage.Close()) }()
	purges, err := wire.NewOfflinePurge(storage, wire.NewStores(storage.DB), cfg.Slack, logger)
	if err != nil {
		return err
	}
	return do(purges)
}

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
