package repositories

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
	"bobbin/app/db/commit"
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
	row := models.Session{Session: s, Webhook: models.WebhookFrom(s.Webhook)}
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
	if err := commit.Insert(tx, &row); err != nil {
		return err
	}
	id := string(row.ID)
	return commit.Insert(tx, &[]models.SessionReader{
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

// addBytes adds what the rows of the session count; with the sign -1 it takes that off.
func addBytes[T interface{ StoredBytes() int64 }](stx *sessionTx, sign int64, rows []T) {
	for _, row := range rows {
		stx.session.StoredBytes += sign * row.StoredBytes()
	}
}

// messageBytesSQL is the size of a message's texts and metadata.
func messageBytesSQL(db *gorm.DB) string {
	cast := ""
	if isPostgres(db) {
		cast = "::text"
	}
	return fmt.Sprintf("octet_length(content) + COALESCE(octet_length(parts%[1]s), 0) + COALESCE(octet_length(tool_calls%[1]s), 0) + COALESCE(octet_length(metadata%[1]s), 0) + COALESCE(octet_length(feedback%[1]s), 0)", cast)
}

// countStored returns what the session's messages count to which the condition applies.
func (stx *sessionTx) countStored(where string, args ...any) (total int64, err error) {
	err = stx.tx.Model(&core.Message{}).Where("session_id = ?", stx.session.ID).Where(where, args...).
		Select("COALESCE(SUM(? + "+messageBytesSQL(stx.tx)+" + COALESCE("+revisionBytesSQL+", 0)), 0)", core.StoredRow).Scan(&total).Error
	return total, err
}

// StoredBytes returns the bytes of all sessions in the scope with all that their messages, summaries, instructions
// and metadata have, and of the memories.
func (r *Sessions) StoredBytes(ctx context.Context, tenant core.Tenant) (int64, error) {
	metadata := "COALESCE(octet_length(metadata), 0)"
	if isPostgres(r.db) {
		metadata = "COALESCE(octet_length(metadata::text), 0)"
	}
	sum := func(of any, where, row string, rows int) (n int64, err error) {
		list := r.db.WithContext(ctx).Model(of).Where("owner = ? AND "+where, tenant.Owner)
		if tenant.User != "" {
			list = list.Where("user_id = ? AND user_id <> ''", tenant.User)
		}
		err = list.Select("COALESCE(SUM(? + "+row+" + "+metadata+"), 0)", rows*core.StoredRow).Scan(&n).Error
		return n, err
	}
	total, err := sum(&core.Memory{}, "true", "octet_length(content) + COALESCE(octet_length(embedding), 0)", 1)
	if err != nil {
		return 0, wrapError(err, "memories of", tenant.Owner)
	}
	for _, where := range []string{"archived_at IS NULL AND NOT temporary", "archived_at IS NOT NULL AND NOT temporary", "temporary"} { // as the indexes have it
		n, err := sum(&models.Session{}, where, "stored_bytes + octet_length(instructions)", 2)
		if err != nil {
			return 0, wrapError(err, "sessions of", tenant.Owner)
		}
		total += n
	}
	return total, nil
}

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
	row := models.Session{Session: s, Webhook: models.WebhookFrom(s.Webhook)}
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

// maxSetups bounds the setups of a session: it keeps the newest.
const maxSetups = 16

// PromptSetups reads the system prompts and tools to which thoughts and native summaries of sessions are
// bound; Runs.Write and Sessions.ApplyContext store them. Safe for concurrent use.
type PromptSetups struct{ db *gorm.DB }

// NewPromptSetups returns the setups in db.
func NewPromptSetups(db *gorm.DB) *PromptSetups { return &PromptSetups{db: db} }

// Find returns those of the setups that are stored with the session, in no order.
func (r *PromptSetups) Find(ctx context.Context, tenant core.Tenant, session core.SessionID, hashes []string) ([]core.PromptSetup, error) {
	db := byID(ctx, r.db, "session", session)
	rows, err := findIn[models.PromptSetup](db.Where("session_id = ?", session), "hash", hashes)
	if err != nil {
		return nil, wrapError(err, "system prompts of session", session)
	}
	if len(rows) == 0 || rows[0].Owner != tenant.Owner || tenant.User != "" {
		if err := requireVisible(db, tenant, session); err != nil {
			return nil, err
		}
	}
	return mapRows(rows, models.PromptSetup.Core), nil
}

func (stx *sessionTx) storeSetup(s core.PromptSetup) error {
	row := models.PromptSetup{
		SessionID: string(stx.session.ID), Hash: s.Hash, Owner: stx.session.Owner, SystemPrompt: s.SystemPrompt, ToolUsage: s.ToolUsage,
		Tools: string(s.Tools), CreatedAt: core.Now(),
	}
	inserted := stx.tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
	if inserted.Error != nil || inserted.RowsAffected == 0 {
		return inserted.Error
	}
	var old []models.PromptSetup
	newest := stx.tx.Model(&models.PromptSetup{}).Select("hash").Where("session_id = ?", stx.session.ID).Order("created_at DESC, hash").Limit(maxSetups)
	err := stx.tx.Clauses(clause.Returning{}).Where("session_id = ? AND hash NOT IN (?)", stx.session.ID, newest).Delete(&old).Error
	addBytes(stx, 1, []models.PromptSetup{row})
	addBytes(stx, -1, old)
	return err
}
