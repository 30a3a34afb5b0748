package purge

import (
	"context"
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
	Unfinished(ctx context.Context, ids []core.SessionID) ([]core.UnfinishedRun, error)
}

// remover removes it. With force a run that has not ended is no conflict.
type remover interface {
	Session(ctx context.Context, id core.SessionID, force bool) (core.Purged, error)
	FromShared(ctx context.Context, owner, user string, id core.SessionID, force bool) (core.Purged, error)
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

// Options are what a Service is made of. All but CancelTime and Alone are required.
type Options struct {
	Store     store
	Runs      canceler
	Files     files
	Publisher publisher
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
// one of them has not ended, unless it is to be canceled (Force).
func (s *Service) Sessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	ids, err := s.selected(ctx, in)
	if err != nil {
		return core.PurgeReport{}, err
	}
	marks := core.PurgeMarks{Owner: in.Owner, IDs: marksOf(ids)}
	if in.DryRun {
		return s.foresee(ctx, ids, ids, marks, s.countSessions(ids))
	}
	if err := s.clear(ctx, ids, in.Force); err != nil {
		return core.PurgeReport{}, err
	}
	gone, err := s.removeSessions(ctx, ids, marks, in.Force)
	if err != nil {
		return core.PurgeReport{}, err
	}
	s.Logger.InfoContext(ctx, "sessions purged", "sessions", len(ids))
	return s.prove(ctx, proof{ids: ids, gone: gone, marks: marks, compact: in.Compact, count: s.countSessions(ids)})
}

// selected returns the sessions that are meant, each once.
func (s *Service) selected(ctx context.Context, in core.PurgeSessions) ([]core.SessionID, error) {
	if len(in.IDs) == 0 && in.ArchivedBefore == nil {
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
	seen := map[core.SessionID]bool{}
	ids := make([]core.SessionID, 0, len(all))
	for _, id := range all {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids, nil
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
	}
	// Last: a request that was being answered has stored its answer by now, as its
	// session is gone.
	n, err := s.Store.Answers(ctx, marks, false)
	gone.Remove("idempotency_keys", n)
	return gone, err
}

// User removes everything of a user. ErrInvalid without a name, ErrConflict while a
// run in one of the user's sessions has not ended, unless it is to be canceled. A
// user of whom there is nothing is no error: the report says so.
func (s *Service) User(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	if in.Owner == "" || in.User == "" {
		return core.PurgeReport{}, core.Errorf(core.ErrInvalid, "name the owner and the user")
	}
	u, err := s.traces(ctx, in)
	if err != nil {
		return core.PurgeReport{}, err
	}
	if in.DryRun {
		return s.foresee(ctx, u.ids, append(u.ids, u.shared...), u.marks, s.countUser(u.ids, in))
	}
	if err := s.clear(ctx, append(u.ids, u.shared...), in.Force); err != nil {
		return core.PurgeReport{}, err
	}
	gone, err := s.removeUser(ctx, in, u)
	if err != nil {
		return core.PurgeReport{}, err
	}
	// No name in the log: it would be the last trace.
	s.Logger.InfoContext(ctx, "user purged", "sessions", len(u.ids))
	return s.prove(ctx, proof{ids: u.ids, gone: gone, marks: u.marks, compact: in.Compact, count: s.countUser(u.ids, in)})
}

// traces is where there is something of a user.
type traces struct {
	ids    []core.SessionID // the user's own
	shared []core.SessionID // of others, in which the user wrote
	marks  core.PurgeMarks
}

func (s *Service) traces(ctx context.Context, in core.PurgeUser) (traces, error) {
	ids, err := s.Store.OfUser(ctx, in.Owner, in.User)
	if err != nil {
		return traces{}, err
	}
	shared, err := s.Store.Shared(ctx, in.Owner, in.User)
	if err != nil {
		return traces{}, err
	}
	memories, err := s.Store.Memories(ctx, in.Owner, in.User)
	if err != nil {
		return traces{}, err
	}
	marks := core.PurgeMarks{Owner: in.Owner, User: in.User, IDs: marksOf(ids)}
	for _, id := range memories {
		marks.IDs[string(id)] = true
	}
	return traces{ids: ids, shared: shared, marks: marks}, nil
}

func (s *Service) removeUser(ctx context.Context, in core.PurgeUser, u traces) (core.Purged, error) {
	gone, err := s.removeSessions(ctx, u.ids, u.marks, in.Force)
	if err != nil {
		return gone, err
	}
	for _, id := range u.shared {
		one, err := s.Store.FromShared(ctx, in.Owner, in.User, id, in.Force)
		if err != nil && !isNotFound(err) {
			return gone, err
		}
		s.Publisher.Publish(ctx, one.Events)
		one.Events = nil
		gone.Add(one)
	}
	rest, err := s.Store.User(ctx, in.Owner, in.User)
	gone.Add(rest)
	return gone, err
}

func marksOf(ids []core.SessionID) map[string]bool {
	marks := make(map[string]bool, len(ids))
	for _, id := range ids {
		marks[string(id)] = true
	}
	return marks
}
