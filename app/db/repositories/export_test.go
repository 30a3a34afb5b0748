package repositories

import (
	"context"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// InTx runs fn in a transaction.
func InTx(ctx context.Context, db *gorm.DB, fn func(tx *gorm.DB) error) error {
	return inTx(ctx, db, fn)
}

// Fillup adds messages to a session's log without events, for tests that need very many.
func Fillup(ctx context.Context, db *gorm.DB, id core.SessionID, messages []core.Message) error {
	_, err := changeLog(ctx, db, id, func(stx *sessionTx) error {
		_, err := stx.insertMessages(messages, "", "")
		return err
	})
	return err
}

// BeginImport runs an import without its last step, which finish does: the state that a
// process leaves when it dies before that.
func BeginImport(ctx context.Context, r *Messages, tenant core.Tenant, in core.AppendMessages) (finish func(context.Context) error, err error) {
	i, err := r.beginImport(ctx, tenant, in)
	if err != nil {
		return nil, err
	}
	finish = func(ctx context.Context) error {
		_, err := i.finishImport(ctx, in, ignoreResult)
		if err != nil {
			i.undo(ctx)
		}
		return err
	}
	return finish, i.runStep(ctx, func(stx *sessionTx) error { return i.storePart(stx, in.Messages) })
}

// BeginFork begins a fork and copies the first n messages; finish does the rest.
func BeginFork(ctx context.Context, r *Branches, tenant core.Tenant, in core.ForkSession, n int) (fork core.SessionID, finish func(context.Context) error, err error) {
	f, err := r.beginFork(ctx, tenant, in)
	if err != nil {
		return "", nil, err
	}
	if err := f.findPath(ctx); err != nil {
		return "", nil, err
	}
	finish = func(ctx context.Context) error {
		for f.copied < len(f.path) {
			if err := f.copySome(ctx, 1); err != nil {
				return err
			}
		}
		_, err := f.finishFork(ctx, ignoreResult)
		return err
	}
	return f.id, finish, f.copySome(ctx, n)
}

// BeginPurge begins the removal of a session and stops after its search index.
func BeginPurge(ctx context.Context, r *Purges, id core.SessionID) error {
	var lease *sessionLease
	err := inSessionTurn(ctx, r.db, id, func(tx *gorm.DB) error {
		stx, err := lockSession(tx, id)
		if err == nil {
			lease, err = stx.beginPurge(r.db)
		}
		return err
	})
	if err != nil {
		return err
	}
	return lease.deleteAll(ctx, "search_entries", "session_id = @s")
}

// NewSmallSearch returns a search that reads so few entries that it must choose them.
func NewSmallSearch(db *gorm.DB) *Search {
	return &Search{db: db, bounds: searchBounds{ofSession: 40, ofOwner: 60, groups: 400, groupLeast: 20, groupMost: 100, exact: 20, looked: 32, ranked: 16, bytes: 16 << 20}}
}

// NewNarrowSearch returns a search that reads few bytes.
func NewNarrowSearch(db *gorm.DB, bytes int) *Search {
	s := NewSearch(db)
	s.bounds.bytes = bytes
	return s
}
