package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/folder"
	"bobbin/app/purge"
)

// buildPurge builds what removes sessions and users while this process serves.
func (a *App) buildPurge(service *chat.Service) *purge.Service {
	return purge.New(purge.Options{
		Store: repositories.NewPurges(a.database.Gorm), Runs: cancelHere{service}, Files: a.database, Publisher: a.feed,
		Tables: repositories.PurgedTables(), Logger: a.log, Audit: repositories.NewAudit(a.database.Gorm),
	})
}

// cancelHere cancels runs of this process and of others.
type cancelHere struct{ chat *chat.Service }

// Cancel asks the run to stop, and does not wait for it.
func (c cancelHere) Cancel(ctx context.Context, scope core.Scope, id core.RunID) error {
	_, err := c.chat.Cancel(ctx, scope, id, false)
	return err
}

// cancelThere asks other processes to cancel runs, through the database.
type cancelThere struct{ runs *repositories.Runs }

// Cancel asks the run to stop, and does not wait for it.
func (c cancelThere) Cancel(ctx context.Context, scope core.Scope, id core.RunID) error {
	_, _, err := c.runs.RequestCancel(ctx, scope, id)
	return err
}

// nobody watches where no server runs.
type nobody struct{}

// Publish does nothing: other processes' watchers read the database.
func (nobody) Publish(context.Context, []core.Event) {}

// Purge calls do with what removes sessions and users, in this process. It takes
// the data folder meanwhile: ErrConflict when a server holds it, which has to do the
// work itself then.
func Purge(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*purge.Service) error) (err error) {
	held, err := folder.Hold(ctx, cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if err := database.Migrate(ctx); err != nil {
		return err
	}
	return do(purge.New(purge.Options{
		Store: repositories.NewPurges(database.Gorm), Runs: cancelThere{repositories.NewRuns(database.Gorm)},
		Files: database, Publisher: nobody{}, Tables: repositories.PurgedTables(), Logger: logger,
		Audit: repositories.NewAudit(database.Gorm),
		// Who holds the folder of a SQLite file is the only one who works on its runs.
		Alone: strings.HasPrefix(cfg.Database.URL.Reveal(), "sqlite://"),
	}))
}
