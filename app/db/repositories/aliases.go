package repositories

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Aliases stores the names by which surfaces know sessions. Safe for concurrent use.
type Aliases struct{ db *gorm.DB }

// NewAliases returns the aliases in db.
func NewAliases(db *gorm.DB) *Aliases { return &Aliases{db: db} }

// errAliasTaken rolls back a session whose alias another transaction has stored.
var errAliasTaken = errors.New("the alias is taken")

// Open returns the session of the alias. If there is none, it stores s, which needs an owner,
// together with the alias. ErrConflict while the session is being removed.
func (r *Aliases) Open(ctx context.Context, a core.Alias, s core.Session) (core.Session, error) {
	if found, err := r.find(ctx, s.Owner, a); err != nil || found.ID != "" {
		return found, err
	}
	s, err := withSessionDefaults(s)
	if err != nil {
		return core.Session{}, err
	}
	row := sessionFrom(s)
	alias := models.SessionAlias{Owner: s.Owner, Surface: string(a.Surface), Alias: a.Name, SessionID: string(s.ID), CreatedAt: s.CreatedAt}
	err = inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := createSession(tx, row); err != nil {
			return err
		}
		res := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&alias)
		if res.Error == nil && res.RowsAffected == 0 {
			return errAliasTaken
		}
		return res.Error
	})
	if errors.Is(err, errAliasTaken) {
		return r.find(ctx, s.Owner, a)
	}
	return s, wrapError(err, "session", s.ID)
}

// find returns the session of the alias; without an id if there is none.
func (r *Aliases) find(ctx context.Context, owner string, a core.Alias) (core.Session, error) {
	row, err := findFirst[models.SessionAlias](r.db.WithContext(ctx).Where("owner = ? AND surface = ? AND alias = ?", owner, a.Surface, a.Name))
	if err != nil || row == nil {
		return core.Session{}, wrapError(err, "session", a.Name)
	}
	id := core.SessionID(row.SessionID)
	found, err := NewSessions(r.db).Get(ctx, core.Tenant{Owner: owner}, id)
	if errors.Is(err, core.ErrNotFound) { // hidden: its alias goes with it
		return core.Session{}, core.SessionBusy(id, "it is being removed")
	}
	return found, err
}

// Rebind makes the alias that of another session. ErrStale unless it belongs to from.
func (r *Aliases) Rebind(ctx context.Context, owner string, a core.Alias, from, to core.SessionID) error {
	res := r.db.WithContext(ctx).Model(&models.SessionAlias{}).
		Where("owner = ? AND surface = ? AND alias = ? AND session_id = ?", owner, a.Surface, a.Name, from).Update("session_id", to)
	if res.Error == nil && res.RowsAffected == 0 {
		return core.Errorf(core.ErrStale, "session %s: the alias belongs to another session", from)
	}
	return wrapError(res.Error, "session", to)
}
