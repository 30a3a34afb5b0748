package purge

import (
	"context"
	"errors"
	"maps"

	"bobbin/app/core"
)

// rounds is how often what there is of a user is looked for anew: who goes on
// writing meanwhile is followed so far, and told of in the report.
const rounds = 4

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
		return s.foresee(ctx, u.ids, append(u.ids, u.shared...), u.marks, s.countUser(nil, in))
	}
	var gone core.Purged
	ids, marks := u.ids, u.marks
	for round := 0; round == 0 || round < rounds && u.any(); round++ {
		one, err := s.removeTraces(ctx, in, u)
		gone.Add(one)
		if err != nil {
			s.note(ctx, act{core.AuditUserPurged, in.Owner, hidden(in.User)}, gone, err)
			return core.PurgeReport{}, cutOff(err, gone)
		}
		if u, err = s.traces(ctx, in); err != nil {
			s.note(ctx, act{core.AuditUserPurged, in.Owner, hidden(in.User)}, gone, err)
			return core.PurgeReport{}, cutOff(err, gone)
		}
		ids = append(ids, u.ids...)
		maps.Copy(marks.IDs, u.marks.IDs)
	}
	ids = once(ids)
	s.note(ctx, act{core.AuditUserPurged, in.Owner, hidden(in.User)}, gone, nil)
	// No name in the log: it would be the last trace.
	s.Logger.InfoContext(ctx, "user purged", "sessions", len(ids))
	return s.prove(ctx, proof{ids: ids, gone: gone, marks: marks, compact: in.Compact, count: s.countUser(ids, in)})
}

// traces is where there is something of a user.
type traces struct {
	ids    []core.SessionID // the user's own
	shared []core.SessionID // of others, in which the user wrote
	more   bool             // memories or files
	marks  core.PurgeMarks
}

func (t traces) any() bool { return len(t.ids)+len(t.shared) > 0 || t.more }

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
	t := traces{ids: ids, shared: shared, marks: core.PurgeMarks{Owner: in.Owner, User: in.User, IDs: marksOf(ids)}}
	for _, id := range memories {
		t.marks.IDs[string(id)] = true
	}
	err = s.markBlobs(ctx, &t.marks, ids, in.Owner, in.User)
	t.more = len(t.marks.IDs) > len(ids)
	return t, err
}

// removeTraces removes what was found of the user.
func (s *Service) removeTraces(ctx context.Context, in core.PurgeUser, u traces) (core.Purged, error) {
	if err := s.clear(ctx, append(u.ids, u.shared...), in.Force); err != nil {
		return core.Purged{}, err
	}
	gone, err := s.removeSessions(ctx, u.ids, u.marks, in.Force)
	if err != nil {
		return gone, err
	}
	unended := core.RefuseUnended
	switch {
	case in.Force && s.Alone:
		unended = core.AllowUnended
	case in.Force:
		unended = core.AllowUnleased
	}
	for _, id := range u.shared {
		one, err := s.Store.FromShared(ctx, in.Owner, in.User, id, unended)
		if errors.Is(err, core.ErrStale) || isNotFound(err) { // it was forked meanwhile, or purged: the next round sees it
			continue
		}
		if err != nil {
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

// countUser returns what counts what there is of a user: in the sessions that were
// the user's, in those that are, and elsewhere.
func (s *Service) countUser(were []core.SessionID, in core.PurgeUser) count {
	return func(ctx context.Context) (core.Purged, error) {
		are, err := s.Store.OfUser(ctx, in.Owner, in.User)
		if err != nil {
			return core.Purged{}, err
		}
		there, err := s.Store.CountSessions(ctx, once(append(were[:len(were):len(were)], are...)))
		if err != nil {
			return there, err
		}
		rest, err := s.Store.CountUser(ctx, in.Owner, in.User)
		there.Add(rest)
		return there, err
	}
}
