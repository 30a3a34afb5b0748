package purge

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"bobbin/app/core"
)

// maxRounds is how often a user's data is searched for: data written meanwhile is removed in
// the next round. What is left after the last one is in the report.
const maxRounds = 4

// User removes everything of a user. ErrInvalid without a name, ErrConflict while a run in one
// of the user's sessions has not ended, unless Force cancels it. A user without any data is no
// error: the report says so.
func (s *Service) User(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	if err := s.admitPosts(in.SlackPosts); err != nil {
		return core.PurgeReport{}, err
	}
	return s.purgeUser(ctx, in, nil)
}

// purgeUser is User, with what an earlier attempt knew of the user; nil = nothing.
func (s *Service) purgeUser(ctx context.Context, in core.PurgeUser, before *core.DeletionPlan) (core.PurgeReport, error) {
	if in.Owner == "" || in.User == "" {
		return core.PurgeReport{}, core.Errorf(core.ErrInvalid, "name the owner and the user")
	}
	u, err := s.findTraces(ctx, in)
	if err != nil {
		return core.PurgeReport{}, err
	}
	if in.DryRun {
		return s.previewPurge(ctx, u.previewInput(s.countUser(nil, in), in.SlackPosts))
	}
	var gone core.Purged
	ids, marks := u.ids, u.marks
	if before != nil {
		ids = append(ids[:len(ids):len(ids)], before.Sessions...)
		maps.Copy(marks.IDs, marksOfPlan(before))
	}
	for round := 0; round == 0 || round < maxRounds && u.hasAny(); round++ {
		one, err := s.removeTraces(ctx, in, u, before)
		gone.Add(one)
		if err != nil {
			s.recordAudit(ctx, auditAction{in.Actor, core.AuditUserPurged, in.Owner, hashedUser(in.User)}, gone, err)
			return core.PurgeReport{}, partialPurgeError(err, gone)
		}
		if u, err = s.findTraces(ctx, in); err != nil {
			s.recordAudit(ctx, auditAction{in.Actor, core.AuditUserPurged, in.Owner, hashedUser(in.User)}, gone, err)
			return core.PurgeReport{}, partialPurgeError(err, gone)
		}
		ids = append(ids, u.ids...)
		maps.Copy(marks.IDs, u.marks.IDs)
	}
	ids = uniqueIDs(ids)
	if before != nil { // kept responses that mention what an earlier attempt removed
		n, err := s.Store.Answers(ctx, marks, false)
		if gone.Remove("idempotency_keys", n); err != nil {
			return core.PurgeReport{}, partialPurgeError(err, gone)
		}
	}
	if s.ForgetUser != nil {
		s.ForgetUser(in.User)
	}
	s.recordAudit(ctx, auditAction{in.Actor, core.AuditUserPurged, in.Owner, hashedUser(in.User)}, gone, nil)
	// The log does not name the user: it would be the last trace.
	s.Logger.InfoContext(ctx, "user purged", "sessions", len(ids))
	report, err := s.buildReport(ctx, reportInput{ids: ids, gone: gone, before: before, marks: marks, options: in.PurgeOptions, count: s.countUser(ids, in)})
	if err == nil && report.Rows() == 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("nothing was found: the owner %s has no data of this user", in.Owner))
	}
	return report, err
}

// traces is where a user's data is.
type traces struct {
	ids    []core.SessionID // the user's own
	shared []core.SessionID // sessions of others in which the user wrote
	more   bool             // there are memories or files
	marks  core.PurgeMarks
}

func (t traces) hasAny() bool { return len(t.ids)+len(t.shared) > 0 || t.more }

func (s *Service) findTraces(ctx context.Context, in core.PurgeUser) (traces, error) {
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

// previewInput returns the input of a preview of the traces.
func (t traces) previewInput(count countFunc, posts bool) previewInput {
	return previewInput{ids: t.ids, touched: append(t.ids[:len(t.ids):len(t.ids)], t.shared...), marks: t.marks, count: count, posts: posts}
}

// removeTraces removes the data that was found of the user.
func (s *Service) removeTraces(ctx context.Context, in core.PurgeUser, u traces, before *core.DeletionPlan) (core.Purged, error) {
	if err := s.stopRuns(ctx, append(u.ids, u.shared...), in.Force); err != nil {
		return core.Purged{}, err
	}
	gone, err := s.deletePosts(ctx, in.SlackPosts, u.ids, before)
	if err != nil {
		return gone, err
	}
	removed, err := s.removeSessions(ctx, u.ids, u.marks, in.Force)
	gone.Add(removed)
	if err != nil {
		return gone, err
	}
	unended := core.RefuseUnended
	if in.Force {
		unended = core.AllowUnleased
	}
	for _, id := range u.shared {
		one, err := s.Store.FromShared(ctx, in.Owner, in.User, id, unended)
		if errors.Is(err, core.ErrStale) || isNotFound(err) { // it was forked or purged meanwhile: the next round handles it
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

// countUser returns a function that counts a user's data: in the sessions that were the user's,
// in those that are now, and elsewhere.
func (s *Service) countUser(were []core.SessionID, in core.PurgeUser) countFunc {
	return func(ctx context.Context) (core.Purged, error) {
		are, err := s.Store.OfUser(ctx, in.Owner, in.User)
		if err != nil {
			return core.Purged{}, err
		}
		there, err := s.Store.CountSessions(ctx, uniqueIDs(append(were[:len(were):len(were)], are...)))
		if err != nil {
			return there, err
		}
		rest, err := s.Store.CountUser(ctx, in.Owner, in.User)
		there.Add(rest)
		return there, err
	}
}
