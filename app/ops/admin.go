// Package ops is what operators do from the command line, without a server: diagnose an
// installation, migrate and copy a database, look after keys, and check agents'
// files.
package ops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/wire"
)

// Service creates and revokes keys, each with its entry in the audit
// log. Safe for concurrent use.
type Service struct {
	Keys  core.APIKeyStore
	Audit *repositories.Audit
}

// NewKey describes a new key.
type NewKey struct {
	Name    string        // 1 to 64 letters, digits, and . _ @ -
	Owner   string        // likewise; empty = the name
	Rights  core.Scopes   // zero = core.ReadWrite
	Expires time.Duration // from now; 0 = never
	Actor   string        // who creates it
}

// CreateKey creates a key and returns it with its secret, which is never shown again.
func (s *Service) CreateKey(ctx context.Context, in NewKey) (key core.APIKey, secret string, err error) {
	in.Owner = cmp.Or(in.Owner, in.Name)
	for what, name := range map[string]string{"name": in.Name, "owner": in.Owner} {
		if !config.ValidKeyName(name) {
			return core.APIKey{}, "", core.Errorf(core.ErrInvalid, "the %s %.80q must be 1 to 64 letters, digits, and . _ @ -", what, name)
		}
	}
	if in.Expires < 0 {
		return core.APIKey{}, "", core.Errorf(core.ErrInvalid, "the lifetime of a key must be positive, such as 720h")
	}
	key = core.APIKey{ID: core.NewID[core.KeyID](), Name: in.Name, Owner: in.Owner, Rights: cmp.Or(in.Rights, core.ReadWrite), CreatedAt: core.Now()}
	if in.Expires > 0 {
		at := key.CreatedAt.Add(in.Expires)
		key.ExpiresAt = &at
	}
	secret = core.NewSecret()
	entry := entryOf(in.Actor, core.AuditKeyCreated, key, map[string]any{"name": key.Name, "scopes": key.Rights, "expires_at": key.ExpiresAt})
	if err := s.Keys.Create(ctx, key, core.SecretHash(secret), entry); err != nil {
		return core.APIKey{}, "", err
	}
	return key, secret, nil
}

func entryOf(actor, action string, key core.APIKey, details map[string]any) core.AuditEntry {
	raw, _ := json.Marshal(details) // it has plain values only
	return core.AuditEntry{
		ID: core.NewID[core.AuditID](), CreatedAt: core.Now(), Actor: actor, Action: action,
		Owner: key.Owner, Target: "key " + string(key.ID), Details: raw,
	}
}

// RevokeKey revokes a key and returns it. The key is named by its id, or by its name if only
// one valid key has it: otherwise ErrConflict. A key that was already revoked stays unchanged.
func (s *Service) RevokeKey(ctx context.Context, which, actor string) (core.APIKey, error) {
	key, err := s.findKey(ctx, which)
	if err != nil || key.RevokedAt != nil {
		return key, err
	}
	entry := entryOf(actor, core.AuditKeyRevoked, key, map[string]any{"name": key.Name})
	if err := s.Keys.Revoke(ctx, key.ID, entry); err != nil {
		return core.APIKey{}, err
	}
	key.RevokedAt = &entry.CreatedAt
	return key, nil
}

// findKey returns the key with that id, or the only valid one with that name.
func (s *Service) findKey(ctx context.Context, which string) (core.APIKey, error) {
	keys, err := s.Keys.List(ctx)
	if err != nil {
		return core.APIKey{}, err
	}
	var named []core.APIKey
	for _, k := range keys {
		switch {
		case string(k.ID) == which:
			return k, nil
		case k.Name == which && k.RevokedAt == nil:
			named = append(named, k)
		}
	}
	switch len(named) {
	case 1:
		return named[0], nil
	case 0:
		return core.APIKey{}, core.Errorf(core.ErrNotFound, "the database has no key %.80q; bobbin keys list shows all keys", which)
	default:
		return core.APIKey{}, core.Errorf(core.ErrConflict, "%d keys have the name %s; use the id, which bobbin keys list shows", len(named), which)
	}
}

// Admin calls do with what looks after keys and the audit log. It works on the database
// itself, also beside a server that runs on it.
func Admin(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*Service) error) error {
	return withDatabase(ctx, cfg, logger, func(database *db.DB) error {
		if err := database.Migrate(ctx); err != nil {
			return err
		}
		s := wire.NewStores(database)
		return do(&Service{s.APIKeys, s.Audit})
	})
}

// withDatabase calls do with the open database of the settings.
func withDatabase(ctx context.Context, cfg config.Config, logger *slog.Logger, do func(*db.DB) error) error {
	database, err := db.Open(ctx, cfg.Database.URL.Reveal(), logger)
	if err != nil {
		return err
	}
	return errors.Join(do(database), database.Close())
}

// Backup copies the database into a new file, whether a server runs on it or not.
func Backup(ctx context.Context, cfg config.Config, logger *slog.Logger, file, actor string) (copied db.BackupFile, err error) {
	if path, embedded := wire.SQLiteFile(cfg); embedded {
		if _, err := os.Stat(path); err != nil { // opening would make it
			return copied, core.Errorf(core.ErrNotFound, "there is no database to copy: %v", err)
		}
	}
	err = withDatabase(ctx, cfg, logger, func(database *db.DB) error {
		if copied, err = database.Backup(ctx, file); err != nil {
			return err
		}
		err := repositories.NewAudit(database.Gorm).Add(ctx, core.AuditEntry{Actor: actor, Action: core.AuditBackupMade, Target: "database"}, copied)
		if err != nil { // the copy is good all the same
			logger.WarnContext(ctx, "backup not noted in the audit log", "err", err)
		}
		return nil
	})
	return copied, err
}

// Migrate applies the migrations that the database lacks and returns its version;
// with apply false it only looks.
func Migrate(ctx context.Context, cfg config.Config, logger *slog.Logger, apply bool) (v db.Versions, err error) {
	err = withDatabase(ctx, cfg, logger, func(database *db.DB) error {
		if apply {
			if err := database.Migrate(ctx); err != nil {
				return err
			}
		}
		v, err = database.MigrationStatus(ctx)
		return err
	})
	return v, err
}

// LoadAgents reads the agents' files without looking at their models.
func LoadAgents(cfg config.Config) (wire.Agents, error) {
	return wire.LoadAgents(cfg, wire.NewTools(cfg, wire.ToolParts{}), wire.Models{})
}

// reindexPause is how long a reindexing waits for messages that another process indexes.
const reindexPause = 100 * time.Millisecond

// ReindexSearch indexes all messages again, also beside a server that runs on the database,
// and reports every second how many are left. Searches find everything meanwhile. It
// may be broken off: a server goes on. all = false goes on with what is not indexed yet.
func ReindexSearch(ctx context.Context, cfg config.Config, logger *slog.Logger, all bool, report func(left int64)) error {
	return withDatabase(ctx, cfg, logger, func(database *db.DB) error {
		search := wire.NewStores(database).Search
		err := database.Migrate(ctx)
		if err == nil && all {
			_, err = search.Reindex(ctx)
		}
		for left, last := int64(1), (time.Time{}); err == nil && left > 0; {
			if time.Since(last) > time.Second {
				if left, err = search.Unindexed(ctx); err == nil {
					report(left)
				}
				last = time.Now()
				continue
			}
			var n int
			if n, _, err = search.IndexNext(ctx); err == nil && n == 0 {
				err, last = core.Sleep(ctx, reindexPause), time.Time{}
			}
		}
		return err
	})
}
