package repositories

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Sessions stores sessions. Safe for concurrent use.
type Sessions struct {
	db *gorm.DB
}

// NewSessions returns the sessions in db.
func NewSessions(db *gorm.DB) *Sessions { return &Sessions{db: db} }

// Create stores a new, empty session and returns it. The owner is required; id
// and times are given where they are missing; counters and summary begin at
// nothing whatever s says. An id that exists already is core.ErrConflict.
func (r *Sessions) Create(ctx context.Context, s core.Session) (core.Session, error) {
	if s.Owner == "" {
		return core.Session{}, core.Errorf(core.ErrInvalid, "a session needs an owner")
	}
	if s.ID == "" {
		s.ID = core.NewID[core.SessionID]()
	}
	if !core.ValidID(s.ID) {
		return core.Session{}, core.Errorf(core.ErrInvalid, "the session id %q is not a UUID", s.ID)
	}
	if err := checkMetadata(s.Metadata); err != nil {
		return core.Session{}, err
	}
	if s.CreatedAt.IsZero() {
		s.CreatedAt = core.Now()
	}
	if s.UpdatedAt.IsZero() {
		s.UpdatedAt = s.CreatedAt
	}
	s = core.Session{
		ID: s.ID, Owner: s.Owner, Agent: s.Agent, Model: s.Model, Title: s.Title, UserID: s.UserID,
		Source: s.Source, Timezone: s.Timezone, Instructions: s.Instructions, Metadata: s.Metadata, Webhook: s.Webhook,
		CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt,
	}
	row := models.SessionFrom(s)
	if err := r.create(ctx, row); err != nil {
		return core.Session{}, failure(err, "session", s.ID)
	}
	return s, nil
}

// create writes a session; its title, if it has one, can be searched.
func (r *Sessions) create(ctx context.Context, row models.Session) error {
	if row.Title == "" {
		return insert(r.db.WithContext(ctx), &row)
	}
	return inTx(ctx, r.db, func(tx *gorm.DB) error {
		if err := insert(tx, &row); err != nil {
			return err
		}
		return index(tx, []entry{titleEntry(row)})
	})
}

// checkMetadata returns ErrInvalid for metadata that are not a JSON object.
func checkMetadata(raw json.RawMessage) error {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || json.Valid(trimmed) && trimmed[0] == '{' {
		return nil
	}
	return &core.Error{Kind: core.ErrInvalid, Message: "metadata must be a JSON object",
		Fields: []core.FieldError{{Field: "metadata", Detail: "must be a JSON object"}}}
}

// Get returns the session, archived or not.
func (r *Sessions) Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	if err := known("session", id); err != nil {
		return core.Session{}, err
	}
	var row models.Session
	err := r.db.WithContext(ctx).Scopes(visible(scope)).Where("id = ?", id).Take(&row).Error
	if err != nil {
		return core.Session{}, failure(err, "session", id)
	}
	return row.Core(), nil
}

// newestActivity is the order of lists of sessions.
const newestActivity = "updated_at DESC, id DESC"

// List returns the sessions in the scope, the newest activity first. ErrInvalid is
// a cursor of another list, and a text that cannot be looked for.
func (r *Sessions) List(ctx context.Context, scope core.Scope, q core.SessionQuery) (core.Page[core.Session], error) {
	none := core.Page[core.Session]{}
	limit, err := pageLimit(q.Limit)
	if err != nil {
		return none, err
	}
	after, more, err := parseCursor(q.Cursor, "sessions")
	if err != nil {
		return none, err
	}
	db := r.db.WithContext(ctx).Scopes(visible(scope))
	if more {
		db = db.Where("(updated_at, id) < (?, ?)", time.UnixMicro(after.N).UTC(), after.ID)
	}
	if q.Agent != "" {
		db = db.Where("agent = ?", q.Agent)
	}
	if q.UserID != "" {
		db = db.Where("user_id = ?", q.UserID)
	}
	if !q.Archived {
		db = db.Where("archived_at IS NULL")
	}
	var rows []models.Session
	if q.Text == "" {
		err = db.Order(newestActivity).Limit(limit + 1).Find(&rows).Error
	} else {
		rows, err = sessionsWith(db, scope, q.Text, limit+1)
	}
	if err != nil {
		return none, failure(err, "sessions of", scope.Owner)
	}
	return page(rows, limit, sure(models.Session.Core), func(s models.Session) position {
		return position{List: "sessions", N: s.UpdatedAt.UnixMicro(), ID: s.ID}
	})
}

// Update changes the session and tells of it in a session.updated event. A patch
// without fields changes nothing and has no event.
func (r *Sessions) Update(ctx context.Context, scope core.Scope, id core.SessionID, p core.SessionPatch) (core.Session, []core.Event, error) {
	if err := checkMetadata(p.Metadata); err != nil {
		return core.Session{}, nil, err
	}
	var j *journal
	err := inTx(ctx, r.db, func(tx *gorm.DB) (err error) {
		if j, err = lockSession(tx, id, visible(scope)); err != nil {
			return err
		}
		if !patch(j, p) {
			return nil
		}
		j.touch()
		j.emit(core.NewEvent(id, "", core.EventSessionUpdated, core.SessionData{Session: j.session.Core()}))
		return j.close()
	})
	if err != nil {
		return core.Session{}, nil, failure(err, "session", id)
	}
	return j.session.Core(), j.events, nil
}

// patch puts the fields of p into the session and reports whether there were any.
func patch(j *journal, p core.SessionPatch) bool {
	set := func(column string, field, value *string) {
		if value != nil {
			*field, j.changes[column] = *value, *value
		}
	}
	set("title", &j.session.Title, p.Title)
	if p.Title != nil { // none is made for it any more
		now := core.Now()
		j.session.TitledAt, j.changes["titled_at"] = &now, now
		j.session.TitleMade, j.changes["title_made"] = false, false
	}
	set("agent", &j.session.Agent, p.Agent)
	set("model", &j.session.Model, p.Model)
	set("timezone", &j.session.Timezone, p.Timezone)
	set("instructions", &j.session.Instructions, p.Instructions)
	if len(p.Metadata) > 0 {
		j.session.Metadata = models.JSON(p.Metadata)
		j.changes["metadata"] = j.session.Metadata
	}
	if p.Webhook != nil {
		j.session.Webhook = models.WebhookFrom(p.Webhook)
		j.changes["webhook_url"], j.changes["webhook_secret"] = j.session.Webhook.URL, j.session.Webhook.Secret
	}
	return len(j.changes) > 0
}

// Archive puts the session away: it takes no new runs and is not listed, and all
// that is in it stays. Archiving it again changes nothing.
func (r *Sessions) Archive(ctx context.Context, scope core.Scope, id core.SessionID) error {
	if err := known("session", id); err != nil {
		return err
	}
	res := r.db.WithContext(ctx).Model(&models.Session{}).Scopes(visible(scope)).Where("id = ?", id).
		UpdateColumn("archived_at", gorm.Expr("COALESCE(archived_at, ?)", core.Now()))
	if res.Error == nil && res.RowsAffected == 0 {
		return notFound("session", id)
	}
	return failure(res.Error, "session", id)
}
