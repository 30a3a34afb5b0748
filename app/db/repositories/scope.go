package repositories

import (
	"strings"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// known returns ErrNotFound for an id that cannot exist, so that PostgreSQL is
// never asked to read it as a UUID.
func known[T ~string](what string, id T) error {
	if !core.ValidID(id) || strings.ToLower(string(id)) != string(id) {
		return notFound(what, id)
	}
	return nil
}

// visible narrows a question about sessions to the scope.
func visible(scope core.Scope) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where("owner = ?", scope.Owner)
		if scope.User != "" {
			db = db.Where("user_id = ?", scope.User)
		}
		return db
	}
}

// within narrows a question about what belongs to sessions, such as messages, to
// one session in the scope.
func within(scope core.Scope, id core.SessionID) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		return ownedBy(scope, id)(db.Where("session_id = ?", id))
	}
}

// ownedBy narrows a question to rows of the scope's owner, and to nothing if the
// session is not the scope's user's.
func ownedBy(scope core.Scope, id core.SessionID) func(*gorm.DB) *gorm.DB {
	return func(db *gorm.DB) *gorm.DB {
		db = db.Where("owner = ?", scope.Owner)
		if scope.User != "" {
			db = db.Where("EXISTS (SELECT 1 FROM sessions WHERE sessions.id = ? AND sessions.user_id = ?)", id, scope.User)
		}
		return db
	}
}

// mustSee returns ErrNotFound unless the session is in the scope. Lists ask only
// when they found nothing: what they find proves it by itself.
func mustSee(db *gorm.DB, scope core.Scope, id core.SessionID) error {
	var n int64
	err := db.Model(&models.Session{}).Scopes(visible(scope)).Where("id = ?", id).Count(&n).Error
	if err == nil && n == 0 {
		err = gorm.ErrRecordNotFound
	}
	return failure(err, "session", id)
}
