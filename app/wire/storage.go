package wire

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
	"bobbin/app/db"
)

// What operators are told about a connection to PostgreSQL that does not verify the server.
const (
	UnverifiedDatabase = "whoever is on the way can read and change all conversations"
	VerifyDatabase     = "add sslmode=verify-full to database.url, and sslrootcert= with the file of its authority, or system"
)

// Storage is an open database that this process may use.
type Storage struct {
	*db.DB

	lock *datadir.Lock // of a SQLite file; nil = PostgreSQL, which any number of processes share
}

// OpenStorage opens the database of the settings, locks its file if it is SQLite, and
// brings its schema up to date.
func OpenStorage(ctx context.Context, cfg config.Config, log *slog.Logger) (*Storage, error) {
	var opts []db.Option
	if cfg.Database.Durability == config.DurabilityNormal {
		opts = append(opts, db.WithoutSync)
	}
	url := cfg.Database.URL.Reveal()
	if db.IsUnverified(url) {
		log.WarnContext(ctx, "nothing proves that PostgreSQL answers: "+UnverifiedDatabase+"; "+VerifyDatabase)
	}
	database, err := db.Open(ctx, url, log, opts...)
	if err != nil {
		return nil, err
	}
	s := &Storage{DB: database}
	if path, embedded := SQLiteFile(cfg); embedded {
		s.lock, err = datadir.HoldDatabase(ctx, path)
	}
	if err == nil {
		err = database.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close closes the database and unlocks its file.
func (s *Storage) Close() error { return errors.Join(s.DB.Close(), s.lock.Release()) }

// SQLiteFile returns the path of the database's file, and false if it is no SQLite file.
func SQLiteFile(cfg config.Config) (path string, embedded bool) {
	return strings.CutPrefix(cfg.Database.URL.Reveal(), "sqlite://")
}
