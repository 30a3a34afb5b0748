package ops

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/wire"
)

// Backup copies the database into a new file, whether a server runs on it or not.
func Backup(ctx context.Context, cfg config.Config, logger *slog.Logger, file, actor string) (copied db.BackupFile, err error) {
	address := cfg.Database.URL.Reveal()
	if path, embedded := wire.SQLiteFile(cfg); embedded {
		if _, err := os.Stat(path); err != nil { // opening would make it
			return copied, core.Errorf(core.ErrNotFound, "there is no database to copy: %v", err)
		}
	}
	database, err := db.Open(ctx, address, logger)
	if err != nil {
		return copied, err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	if copied, err = database.Backup(ctx, file); err != nil {
		return copied, err
	}
	if err := noteBackup(ctx, database, copied, actor); err != nil { // the copy is good all the same
		logger.WarnContext(ctx, "backup not noted in the audit log", "err", err)
	}
	return copied, nil
}

// noteBackup tells the audit log of a copy.
func noteBackup(ctx context.Context, database *db.DB, copied db.BackupFile, actor string) error {
	details, err := json.Marshal(copied)
	if err != nil {
		return err
	}
	return repositories.NewAudit(database.Gorm).Add(ctx, core.AuditEntry{
		ID: core.NewID[core.AuditID](), CreatedAt: core.Now(), Actor: actor, Action: core.AuditBackupMade, Target: "database", Details: details,
	})
}
