package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
)

// Backup copies the database into a new file, whether a server runs on it or not.
func Backup(ctx context.Context, cfg config.Config, logger *slog.Logger, file string) (copied db.Copy, err error) {
	address := cfg.Database.URL.Reveal()
	if path, embedded := strings.CutPrefix(address, "sqlite://"); embedded {
		if _, err := os.Stat(path); err != nil { // opening would make it
			return copied, core.Errorf(core.ErrNotFound, "there is no database to copy: %v", err)
		}
	}
	database, err := db.Open(ctx, address, logger)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	return database.Backup(ctx, file)
}
