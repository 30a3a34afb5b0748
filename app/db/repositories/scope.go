package repositories

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// requireID returns ErrNotFound for an id that cannot exist, so that PostgreSQL never has
// to parse it as a UUID.
func requireID[T ~string](what string, id T) error {
	if !core.ValidID(id) || strings.ToLower(string(id)) != string(id) {
		return notFound(what, id)
	}
	return nil
}

// byID returns a handle for queries by the id. They fail with ErrNotFound if it cannot exist (requireID).
func byID[T ~string](ctx context.Context, db *gorm.DB, what string, id T) *gorm.DB {
	db = db.WithContext(ctx)
	_ = db.AddError(requireID(what, id)) // the error of each query
	return db
}

// visibleTo narrows a query on sessions to the visible ones of the scope.
func visibleTo(tenant core.Tenant) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return inScope(tenant)(db).Where(visibleSQL)
	}
}

// inScope narrows a query on rows with an owner and a user to the scope.
func inScope(tenant core.Tenant) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where("owner = ?", tenant.Owner)
		if tenant.User != "" {
			db = db.Where("user_id = ?", tenant.User)
		}
		return db
	}
}

// withinSession narrows a query on rows of sessions, such as messages, to one session of
// the scope.
func withinSession(tenant core.Tenant, id core.SessionID) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return ownedBy(tenant, id)(db.Where("session_id = ?", id))
	}
}

// withinLog is withinSession for messages that are in the session's log.
func withinLog(tenant core.Tenant, id core.SessionID) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return withinSession(tenant, id)(db).Where(inLogOf, id)
	}
}

// inLogOf is the condition for messages that are in their session's log.
const inLogOf = "seq <= (SELECT last_seq FROM sessions WHERE sessions.id = ?)"

// ownedBy narrows a query to rows of the scope's owner, and to none if the session is
// outside the scope.
func ownedBy(tenant core.Tenant, id core.SessionID) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where("owner = ?", tenant.Owner)
		if tenant.User != "" {
			return db.Where("EXISTS (SELECT 1 FROM sessions WHERE sessions.id = ? AND sessions.user_id = ? AND "+visibleSQL+")", id, tenant.User)
		}
		return db.Where("EXISTS (SELECT 1 FROM sessions WHERE sessions.id = ? AND "+visibleSQL+")", id)
	}
}

// requireVisible returns ErrNotFound unless the session is in the scope. Lists check this
// only when they are empty: a row proves it.
func requireVisible(db *gorm.DB, tenant core.Tenant, id core.SessionID) error {
	var n int64
	err := db.Model(&models.Session{}).Scopes(visibleTo(tenant)).Where("id = ?", id).Count(&n).Error
	if err == nil && n == 0 {
		err = gorm.ErrRecordNotFound
	}
	return wrapError(err, "session", id)
}
