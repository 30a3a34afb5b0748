package purge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bobbin/app/core"
)

// store removes from the database.
type store interface {
	finder
	remover
	counter
}

// finder knows what is meant.
type finder interface {
	Exist(ctx context.Context, owner string, ids []core.SessionID) error
	Archived(ctx context.Context, owner string, before time.Time) ([]core.SessionID, error)
	OfUser(ctx context.Context, owner, user string) ([]core.SessionID, error)
	Shared(ctx context.Context, owner, user string) ([]core.SessionID, error)
	Memories(ctx context.Context, owner, user string) ([]core.MemoryID, error)
	// Blobs returns the files of the sessions, and of the user if one is named.
	Blobs(ctx context.Context, ids []core.SessionID, owner, user string) ([]core.BlobID, error)
	Unfinished(ctx context.Context, ids []core.SessionID) ([]core.UnfinishedRun, error)
}

// remover removes it. With force a run that has not ended is no conflict.
type remover interface {
	Session(ctx context.Context, id core.SessionID, force bool) (core.Purged, error)
	FromShared(ctx context.Context, owner, user string, id core.SessionID, unended core.Unended) (core.Purged, error)
	User(ctx context.Context, owner, user string) (core.Purged, error)
	Answers(ctx context.Context, m core.PurgeMarks, dry bool) (int64, error)
}

// counter counts what there is.
type counter interface {
	CountSessions(ctx context.Context, ids []core.SessionID) (core.Purged, error)
	CountUser(ctx context.Context, owner, user string) (core.Purged, error)
}

// canceler asks whoever works on a run to stop. It does not wait.
type canceler interface {
	Cancel(ctx context.Context, scope core.Scope, id core.RunID) error
}

// files takes what was removed out of the database's files. It returns what an
// operator should know.
type files interface {
	Compact(ctx context.Context, tables []string) (notes []string, err error)
}

// publisher tells those who watch a session.
type publisher interface {
	Publish(ctx context.Context, events []core.Event)
}

// auditor keeps what operators did.
type auditor interface {
	Add(ctx context.Context, entry core.AuditEntry) error
}

// Options are what a Service is made of. All but CancelTime and Alone are required.
type Options struct {
	Store     store
	Runs      canceler
	Files     files
	Publisher publisher
	Audit     auditor
	Tables    []string // in which something can have been removed
	Logger    *slog.Logger
	// Alone says that no other process works on runs of this database: what is not
	// ended is not worked on either.
	Alone bool
	// CancelTime is how long a canceled run may take to end; 0 = 45 s, longer than a
	// lease and a heartbeat.
	CancelTime time.Duration
}

// Service removes sessions and users. Safe for concurrent use.
type Service struct {
	Options
}

// New returns a service.
func New(o Options) *Service {
	if o.CancelTime <= 0 {
		o.CancelTime = 45 * time.Second
	}
	return &Service{Options: o}
}

// Sessions removes sessions with everything that belongs to them. ErrNotFound for
// an id that does not exist, before anything is removed; ErrConflict while a run of
// one of them has not ended, unless it is to be canceled (Force). Where none is named,
// and Compact is set, only the bytes of earlier purges are taken out of the files.
func (s *Service) Sessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	ids, err := s.selected(ctx, in)
	if err != nil {
		return core.PurgeReport{}, err
	}
	marks := core.PurgeMarks{Owner: in.Owner, IDs: marksOf(ids)}
	if err := s.markBlobs(ctx, &marks, ids, "", ""); err != nil {
		return core.PurgeReport{}, err
	}
	count := func(ctx context.Context) (core.Purged, error) { return s.Store.CountSessions(ctx, ids) }
	if in.DryRun {
		return s.foresee(ctx, ids, ids, marks, count)
	}
	if err := s.clear(ctx, ids, in.Force); err != nil {
		return core.PurgeReport{}, err
	}
	gone, err := s.removeSessions(ctx, ids, marks, in.Force)
	if len(ids) > 0 {
		s.note(ctx, act{core.AuditSessionsPurged, in.Owner, fmt.Sprintf("sessions: %d", len(ids))}, gone, err)
	}
	if err != nil {
		return core.PurgeReport{}, cutOff(err, gone)
	}
	s.Logger.InfoContext(ctx, "sessions purged", "sessions", len(ids))
	return s.prove(ctx, proof{ids: ids, gone: gone, marks: marks, compact: in.Compact, count: count})
}

// cutOff says how far a purge came that failed. It is simply to be done again.
func cutOff(err error, gone core.Purged) error {
	kind := core.ErrUnavailable
	var known *core.Error
	if errors.As(err, &known) {
		kind = known.Kind
	}
	n := gone.Removed["sessions"]
	if n == 0 && gone.Emptied["messages"] == 0 {
		return err
	}
	return &core.Error{Kind: kind, Err: err, Message: fmt.Sprintf(
		"%v. Before that %d sessions were removed and %d messages emptied; their bytes may still be in the files. Do it again to go on", err, n, gone.Emptied["messages"])}
}

// selected returns the sessions that are meant, each once.
func (s *Service) selected(ctx context.Context, in core.PurgeSessions) ([]core.SessionID, error) {
	if len(in.IDs) == 0 && in.ArchivedBefore == nil && (!in.Compact || in.DryRun) {
		return nil, core.Errorf(core.ErrInvalid, "name the sessions by their ids, or the time before which they were archived")
	}
	if err := s.Store.Exist(ctx, in.Owner, in.IDs); err != nil {
		return nil, err
	}
	all := in.IDs
	if in.ArchivedBefore != nil {
		archived, err := s.Store.Archived(ctx, in.Owner, *in.ArchivedBefore)
		if err != nil {
			return nil, err
		}
		all = append(all[:len(all):len(all)], archived...)
	}
	return once(all), nil
}

// once returns the ids, each once.
func once(all []core.SessionID) []core.SessionID {
	seen := make(map[core.SessionID]bool, len(all))
	ids := make([]core.SessionID, 0, len(all))
	for _, id := range all {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// removeSessions removes the sessions and the answers that tell of them.
func (s *Service) removeSessions(ctx context.Context, ids []core.SessionID, marks core.PurgeMarks, force bool) (core.Purged, error) {
	var gone core.Purged
	for _, id := range ids {
		one, err := s.Store.Session(ctx, id, force)
		if err != nil && !isNotFound(err) { // somebody else purged it meanwhile
			return gone, err
		}
		gone.Add(one)
		// Whoever watches it, or waits for one of its runs, sees that it is gone.
		s.Publisher.Publish(ctx, []core.Event{core.NewEvent(id, "", core.EventResync, struct{}{})})
	}
	// Last: a request that was being answered has stored its answer by now, as its
	// session is gone.
	n, err := s.Store.Answers(ctx, marks, false)
	gone.Remove("idempotency_keys", n)
	return gone, err
}

// markBlobs adds the files of the sessions and of the user to the marks: an answer to
// an upload has nothing but a file's id and its name.
func (s *Service) markBlobs(ctx context.Context, marks *core.PurgeMarks, ids []core.SessionID, owner, user string) error {
	blobs, err := s.Store.Blobs(ctx, ids, owner, user)
	for _, id := range blobs {
		marks.IDs[string(id)] = true
	}
	return err
}

func marksOf(ids []core.SessionID) map[string]bool {
	marks := make(map[string]bool, len(ids))
	for _, id := range ids {
		marks[string(id)] = true
	}
	return marks
}
