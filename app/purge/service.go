package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// Options configure a Service. All but DeletePosts, ForgetUser and the times are required.
type Options struct {
	Store     *repositories.Purges
	Deletions *repositories.Deletions
	Sessions  core.SessionStore
	// CancelRun requests the cancel of a run and does not wait for it.
	CancelRun func(ctx context.Context, tenant core.Tenant, id core.RunID) error
	// CompactFiles removes deleted bytes from the database's files (db.DB.Compact). It returns
	// notes for the operator.
	CompactFiles func(ctx context.Context, tables []string) (notes []string, err error)
	// DeletePosts deletes the posts of a session from Slack; a dry call only counts them. It may
	// be repeated, and then also counts what it deleted before. nil = Slack is off.
	DeletePosts func(ctx context.Context, id core.SessionID, dry bool) (core.PurgedPosts, error)
	// ForgetUser removes what is in memory of a user; nil = nothing is.
	ForgetUser func(user string)
	// How long events and archived sessions are kept; 0 = forever.
	KeepEvents, KeepArchived time.Duration

	Publisher core.Publisher
	Observer  core.Observer
	Audit     *repositories.Audit
	Logger    *slog.Logger
	Worker    string // names this process (core.NewWorker)
}

// Service removes sessions and users: requests store a deletion, and Run executes it. Run also removes what is too
// old. Safe for concurrent use.
type Service struct {
	Options
	wake  chan struct{}   // a deletion was accepted
	ends  atomic.Int64    // how often Run was to end
	place core.EventPlace // where the last sweep of events ended; used by Run only
}

// New returns a service.
func New(o Options) *Service {
	return &Service{Options: o, wake: make(chan struct{}, deletionWorkers)}
}

// operator is who purges, as the audit log names them.
const operator = "cli"

// Purge removes sessions, or everything of a user, for an operator. It ends with ctx or with the first failed attempt,
// but the deletion goes on. ErrNotFound for an id that does not exist, before anything is removed; ErrConflict while a session
// that changes is in use, unless Force says to cancel its runs. If nothing is named and Compact is set, only the bytes of
// earlier purges are removed from the files. A user without any data is no error: the report says so.
func (s *Service) Purge(ctx context.Context, in core.Purge) (core.PurgeReport, error) {
	d := core.Deletion{Owner: in.Owner, Kind: core.DeleteUser, User: in.User, UserHash: core.SecretHash(in.User), Actor: operator, SlackPosts: in.SlackPosts}
	err := s.admitPosts(d.SlackPosts)
	switch named := len(in.IDs) > 0 || in.ArchivedBefore != nil; {
	case in.User != "" && (in.Owner == "" || named), in.User == "" && !named && (!in.Compact || in.DryRun):
		err = core.Errorf(core.ErrInvalid, "name the sessions by their ids, or the time before which they were archived, or the owner and the user")
	case err == nil && in.User == "":
		d.Kind, d.Plan = core.DeleteSessions, &core.DeletionPlan{}
		var archived []core.SessionID
		if err = s.Store.Exist(ctx, in.Owner, in.IDs); err == nil && in.ArchivedBefore != nil {
			archived, err = s.Store.Archived(ctx, in.Owner, *in.ArchivedBefore)
		}
		d.Plan.Sessions = uniqueIDs(slices.Concat(in.IDs, archived))
	}
	var own, shared []core.SessionID
	if err == nil {
		own, shared, err = s.findSessions(ctx, d)
	}
	if err == nil && in.DryRun {
		return s.preview(ctx, d, own, shared)
	}
	if err == nil && !in.Force {
		err = s.checkIdle(ctx, own, shared)
	}
	if err == nil {
		d, err = s.accept(ctx, d)
	}
	if err == nil && d.SlackPosts != in.SlackPosts {
		err = core.Errorf(core.ErrConflict, "a deletion of this user that was asked for otherwise (posts in Slack) is at work: repeat the purge when it has ended")
	}
	if err == nil {
		d, err = s.await(ctx, d)
	}
	if err != nil {
		return core.PurgeReport{}, err
	}
	report := *d.Report
	if in.Compact {
		notes, err := s.CompactFiles(ctx, repositories.PurgedTables())
		if report.Compacted = err == nil; err != nil {
			s.Logger.WarnContext(ctx, "database not compacted after a purge", "err", err)
			notes = []string{"the removed bytes are still in the database's files: " + err.Error()}
		}
		report.Notes = slices.Concat(notes, report.Notes[1:])
	}
	return report, ctx.Err()
}

// await waits until a deletion is done, or an attempt has failed.
func (s *Service) await(ctx context.Context, accepted core.Deletion) (core.Deletion, error) {
	for ends := s.ends.Load(); ; {
		d, err := s.Deletions.Get(ctx, core.Tenant{Owner: accepted.Owner}, accepted.ID)
		if err != nil || d.Status == core.DeletionSucceeded {
			return d, err
		}
		if d.Error != "" && d.Attempts > accepted.Attempts && d.Status == core.DeletionPending {
			return d, core.Errorf(core.ErrUnavailable, "%s. The purge is retried until it succeeds; then `bobbin sessions purge --compact-only` compacts the files", d.Error)
		}
		if s.ends.Load() > ends {
			return d, core.Errorf(core.ErrUnavailable, "the server is stopping: the purge goes on when it runs again; then `bobbin sessions purge --compact-only` compacts the files")
		}
		if err := core.Sleep(ctx, 100*time.Millisecond); err != nil {
			return d, err
		}
	}
}

// checkIdle returns ErrConflict while a session that a deletion removes or changes is in use.
func (s *Service) checkIdle(ctx context.Context, own, shared []core.SessionID) error {
	runs, err := s.Store.Unfinished(ctx, slices.Concat(own, shared))
	if err == nil && len(runs) > 0 {
		err = core.Errorf(core.ErrConflict, "run %s in session %s has not ended (%d such runs in total): wait for it, or cancel with --force", runs[0].ID, runs[0].SessionID, len(runs))
	}
	if err != nil {
		return err
	}
	return s.Store.CheckFree(ctx, own)
}

func (s *Service) preview(ctx context.Context, d core.Deletion, own, shared []core.SessionID) (core.PurgeReport, error) {
	tables, err := s.Store.Count(ctx, d.Owner, d.User, own)
	if err != nil {
		return core.PurgeReport{}, err
	}
	report := core.PurgeReport{Sessions: uniqueIDs(own), DryRun: true, Tables: tables, Notes: []string{}}
	runs, err := s.Store.Unfinished(ctx, slices.Concat(own, shared))
	for _, run := range runs {
		report.Unfinished = append(report.Unfinished, run.ID)
	}
	if err != nil || !d.SlackPosts {
		return report, err
	}
	report.SlackPosts = &core.PurgedPosts{}
	for _, id := range report.Sessions {
		posts, err := s.DeletePosts(ctx, id, true)
		if err != nil {
			return report, err
		}
		report.SlackPosts.Add(posts)
	}
	report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack that would be deleted: %d", report.SlackPosts.Found))
	return report, nil
}

// DeleteSession accepts the deletion of a session for a caller of the API. The session leaves the lists and accepts no
// more messages. With slackPosts what Bobbin posted for it is deleted from Slack as well. If it is being
// deleted, or was, the existing deletion is returned.
func (s *Service) DeleteSession(ctx context.Context, tenant core.Tenant, id core.SessionID, slackPosts bool) (core.Deletion, error) {
	session, err := s.Sessions.Get(ctx, tenant, id)
	if isNotFound(err) {
		if known, unknown := s.Deletions.OfSession(ctx, tenant, id); unknown == nil {
			return known, nil
		}
	}
	if err != nil {
		return core.Deletion{}, err
	}
	accepted, err := s.accept(ctx, core.Deletion{Owner: tenant.Owner, Kind: core.DeleteSession, SessionID: id, UserHash: core.SecretHash(session.UserID), SlackPosts: slackPosts})
	if err != nil {
		return accepted, err
	}
	// The session may be in use, or gone already: the deletion does not depend on it.
	_, events, err := s.Sessions.Update(ctx, tenant, id, core.SessionPatch{Archived: new(true)})
	if err != nil {
		s.Logger.DebugContext(ctx, "session not archived before its deletion", "session_id", id, "err", err)
	}
	s.Publisher.Publish(context.WithoutCancel(ctx), events)
	return accepted, nil
}

// DeleteUser accepts the deletion of everything of a user for a caller of the API. While one is in progress, it is returned.
func (s *Service) DeleteUser(ctx context.Context, tenant core.Tenant, user string, slackPosts bool) (core.Deletion, error) {
	return s.accept(ctx, core.Deletion{Owner: tenant.Owner, Kind: core.DeleteUser, User: user, UserHash: core.SecretHash(user), SlackPosts: slackPosts})
}

func (s *Service) accept(ctx context.Context, in core.Deletion) (core.Deletion, error) {
	if err := s.admitPosts(in.SlackPosts); err != nil {
		return core.Deletion{}, err
	}
	in.ID, in.CreatedAt = core.NewID[core.DeletionID](), core.Now()
	if in.Actor == "" {
		caller, _ := core.IdentityFrom(ctx)
		in.Actor = "api:" + cmp.Or(caller.Key, core.LocalOwner)
		if caller.User != "" {
			in.Actor = "api:" + hashedUser(caller.User)
		}
	}
	accepted, err := s.Deletions.Create(ctx, in)
	if err == nil {
		core.Signal(s.wake)
	}
	return accepted, err
}

// admitPosts returns ErrInvalid if posts in Slack are to be deleted, but Slack is off.
func (s *Service) admitPosts(wanted bool) error {
	if wanted && s.DeletePosts == nil {
		return core.Errorf(core.ErrInvalid, "posts in Slack cannot be deleted: Slack is off (slack.bot_token, slack.client_id)")
	}
	return nil
}

// hashedUser names a user who is to be forgotten: a reader who knows the id can find the entry,
// others learn nothing.
func hashedUser(user string) string { return "user sha256:" + core.SecretHash(user)[:12] }

// uniqueIDs returns the ids in their order, which is that of their creation, without duplicates; never nil.
func uniqueIDs(all []core.SessionID) []core.SessionID {
	ids := append([]core.SessionID{}, all...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }
