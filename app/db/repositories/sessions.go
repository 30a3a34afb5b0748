package repositories

import (
	"context"
	"reflect"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Sessions stores sessions. Safe for concurrent use.
type Sessions struct{ db *gorm.DB }

// NewSessions returns the sessions in db.
func NewSessions(db *gorm.DB) *Sessions { return &Sessions{db: db} }

// Create stores a new, empty session and returns it. The owner is required; a missing id
// and missing times are assigned; counters start at zero and there is no summary, whatever
// s says. An id that already exists is core.ErrConflict.
func (r *Sessions) Create(ctx context.Context, s core.Session) (core.Session, error) {
	s, err := withSessionDefaults(s)
	if err != nil {
		return core.Session{}, err
	}
	row := sessionFrom(s)
	err = commitRowOnce(ctx, r.db, func(tx *gorm.DB) (string, error) { return string(row.ID), createSession(tx, row) }, func(id string) (err error) {
		s, err = r.Get(ctx, core.Tenant{Owner: s.Owner}, core.SessionID(id))
		return err
	})
	return s, wrapError(err, "session", s.ID)
}

// withSessionDefaults returns the session as Create stores it.
func withSessionDefaults(s core.Session) (core.Session, error) {
	if s.Owner == "" {
		return core.Session{}, core.Errorf(core.ErrInvalid, "a session needs an owner")
	}
	if s.ID == "" {
		s.ID = core.NewID[core.SessionID]()
	}
	if !core.ValidID(s.ID) {
		return core.Session{}, core.Errorf(core.ErrInvalid, "the session id %q is not a UUID", s.ID)
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = core.Now()
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = s.CreatedAt
	}
	return core.Session{
		ID: s.ID, Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: s.Title, UserID: s.UserID,
		Source: s.Source, Timezone: s.Timezone, Instructions: s.Instructions, Metadata: s.Metadata, Pinned: s.Pinned, Temporary: s.Temporary, Tags: s.Tags, Webhook: s.Webhook,
		Speakers: s.Speakers, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, Status: core.SessionIdle,
	}.WithExpiry(), nil
}

// createSession inserts a session and indexes its title, if it has one. Nothing of a temporary
// one is indexed.
func createSession(tx *gorm.DB, row models.Session) error {
	if err := insertSession(tx, row); err != nil || row.Title == "" || row.Temporary {
		return err
	}
	return indexEntries(tx, []entry{titleEntry(row)})
}

// insertSession inserts a session with its readers.
func insertSession(tx *gorm.DB, row models.Session) error {
	if err := insertRows(tx, &row); err != nil {
		return err
	}
	id := string(row.ID)
	return insertRows(tx, &[]models.SessionReader{
		{SessionID: id, Reader: models.ReaderSearch, Owner: row.Owner, Seq: -1}, {SessionID: id, Reader: models.ReaderVectors, Owner: row.Owner},
	})
}

// Get returns the session, archived or not.
func (r *Sessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	row, err := takeRow[sessionRow](byID(ctx, r.db, "session", id).Model(&models.Session{}).Where(visibleTo(tenant)).Scopes(selectSessions(true)).Where("id = ?", id), "session", id)
	return row.toCore(), err
}

// longSessionColumns are the columns of sessions that may be long, without those of the
// summary.
func longSessionColumns() longColumns {
	return longColumns{texts: []string{"instructions"}, jsons: []string{"metadata", "tags"}}
}

// Update changes the session and emits session.updated. A patch that changes nothing emits
// nothing.
func (r *Sessions) Update(ctx context.Context, tenant core.Tenant, id core.SessionID, p core.SessionPatch) (core.Session, []core.Event, error) {
	var session core.Session
	events, err := changeOnce(ctx, r.db, id, func(stx *sessionTx) (err error) {
		if applyPatch(stx, p) {
			stx.setUpdatedAt()
			if err := stx.emitSession("", core.SessionData{}); err != nil {
				return err
			}
		}
		session, err = stx.sessionWithRuns()
		return err
	}, visibleTo(tenant))
	if err == nil && session.ID == "" { // an earlier execution of the request has committed it
		session, err = r.Get(ctx, tenant, id)
	}
	return session, events, err
}

// applyPatch sets the fields of p and reports whether that changes something.
func applyPatch(stx *sessionTx, p core.SessionPatch) bool {
	s, now := &stx.session, core.Now()
	set := func(field, value *string) {
		if value != nil {
			*field = *value
		}
	}
	set(&s.Title, p.Title)
	if p.Title != nil { // no title is generated from now on
		s.TitledAt, s.TitleMade = &now, false
	}
	set(&s.Agent, p.Agent)
	set(&s.Model, p.Model)
	set(&s.Timezone, p.Timezone)
	set(&s.Instructions, p.Instructions)
	if len(p.Metadata) > 0 {
		s.Metadata = p.Metadata
	}
	s.Temporary = s.Temporary && !p.Keep
	if p.Pinned != nil {
		s.Pinned = *p.Pinned
	}
	if p.Tags != nil {
		s.Tags = p.Tags
	}
	if p.Webhook != nil {
		s.Webhook = models.WebhookFrom(p.Webhook)
	}
	if p.Archived != nil && *p.Archived != (s.ArchivedAt != nil) {
		s.ArchivedAt = nil
		if *p.Archived {
			s.ArchivedAt = &now
		}
	}
	return !reflect.DeepEqual(stx.before, *s)
}

// GiveTitle stores a generated title, unless the session has one or had one before: what a
// user set, even an empty title, stays. A title of a message that has been deleted, or edited
// since the run began, is dropped. The model calls are recorded in any case. It returns the
// events, none if the title was not needed.
func (r *Sessions) GiveTitle(ctx context.Context, tenant core.Tenant, t core.NewTitle) ([]core.Event, error) {
	return changeSession(ctx, r.db, t.SessionID, func(stx *sessionTx) error {
		if err := stx.recordCalls(t.Calls, ""); err != nil {
			return err
		}
		if stx.session.Title != "" || stx.session.TitledAt != nil || t.Title == "" {
			return nil
		}
		changedSQL := "deleted_at IS NOT NULL OR revised_at > (SELECT started_at FROM runs WHERE id = ?)" // since the run began
		changed, err := count(stx.tx.Model(&core.Message{}).Where("id IN ?", t.Of).Where(changedSQL, models.Ref(t.RunID)))
		if err != nil || changed > 0 {
			return err
		}
		now := core.Now()
		stx.session.Title, stx.session.TitledAt, stx.session.TitleMade, stx.session.TitleMessageID = t.Title, &now, true, ""
		if len(t.Of) > 0 {
			stx.session.TitleMessageID = models.Ref(t.Of[0])
		}
		return stx.emitSession(t.RunID, core.SessionData{})
	}, visibleTo(tenant))
}

// sessionFrom returns the row of a new session.
func sessionFrom(s core.Session) models.Session {
	return models.Session{Session: s, Webhook: models.WebhookFrom(s.Webhook)}
}
