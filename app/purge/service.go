package purge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// Options configure a Service. All but DeletePosts and ForgetUser are required.
type Options struct {
	Store *repositories.Purges
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
	Publisher  core.Publisher
	Audit      *repositories.Audit
	Tables     []string // from which a purge removes
	Logger     *slog.Logger
	Worker     string // names this process (core.NewWorker); for Run alone
}

// Service removes sessions and users. Safe for concurrent use.
type Service struct {
	Options
}

// New returns a service.
func New(o Options) *Service { return &Service{o} }

// Sessions removes sessions with everything that belongs to them. ErrNotFound for an id that
// does not exist, before anything is removed; ErrConflict while a run of one of them has not
// ended, unless Force cancels it. If no session is named and Compact is set, only the bytes of
// earlier purges are removed from the files.
func (s *Service) Sessions(ctx context.Context, in core.PurgeSessions) (core.PurgeReport, error) {
	if err := s.admitPosts(in.SlackPosts); err != nil {
		return core.PurgeReport{}, err
	}
	if len(in.IDs) == 0 && in.ArchivedBefore == nil && (!in.Compact || in.DryRun) {
		return core.PurgeReport{}, core.Errorf(core.ErrInvalid, "name the sessions by their ids, or the time before which they were archived")
	}
	if err := s.Store.Exist(ctx, in.Owner, in.IDs); err != nil {
		return core.PurgeReport{}, err
	}
	all := in.IDs
	if in.ArchivedBefore != nil {
		archived, err := s.Store.Archived(ctx, in.Owner, *in.ArchivedBefore)
		if err != nil {
			return core.PurgeReport{}, err
		}
		all = append(all[:len(all):len(all)], archived...)
	}
	ids := uniqueIDs(all)
	return s.purge(ctx, job{PurgeOptions: in.PurgeOptions, owner: in.Owner, traces: traces{ids: ids}})
}

// User removes everything of a user. ErrInvalid without a name, ErrConflict while a run in one
// of the user's sessions has not ended, unless Force cancels it. A user without any data is no
// error: the report says so.
func (s *Service) User(ctx context.Context, in core.PurgeUser) (core.PurgeReport, error) {
	if err := s.admitPosts(in.SlackPosts); err != nil {
		return core.PurgeReport{}, err
	}
	if in.Owner == "" || in.User == "" {
		return core.PurgeReport{}, core.Errorf(core.ErrInvalid, "name the owner and the user")
	}
	return s.purge(ctx, job{PurgeOptions: in.PurgeOptions, owner: in.Owner, user: in.User})
}

// purge previews or executes the job, of which it finds the traces.
func (s *Service) purge(ctx context.Context, j job) (_ core.PurgeReport, err error) {
	if j.traces, err = s.findTraces(ctx, j); err != nil {
		return core.PurgeReport{}, err
	}
	if j.DryRun {
		return s.preview(ctx, j)
	}
	return s.execute(ctx, j)
}

// partialPurgeError adds to the error how far the purge came. It is simply to be repeated.
func partialPurgeError(err error, gone core.Purged) error {
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
		"%v. Before that %d sessions were removed and %d messages emptied; their bytes may still be in the files. Repeat the purge to continue", err, n, gone.Emptied["messages"])}
}

// uniqueIDs returns the ids in their order, which is that of their creation, without duplicates; never nil.
func uniqueIDs(all []core.SessionID) []core.SessionID {
	ids := append([]core.SessionID{}, all...)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// publishRemoval notifies the watchers of a session that was removed, and of its owner's sessions.
func (s *Service) publishRemoval(ctx context.Context, id core.SessionID, gone core.Purged) {
	e := core.NewEvent(id, "", core.EventResync, nil)
	e.Owner = gone.Owner
	s.Publisher.Publish(ctx, []core.Event{e})
}

// Expired removes sessions whose retention has ended, and returns how many. Sessions that no
// longer exist, or without force have an unfinished run, are skipped. The bytes stay in the database's files until
// their space is reused.
func (s *Service) Expired(ctx context.Context, ids []core.SessionID, force bool) (removed int, err error) {
	for _, id := range ids {
		_, err := s.removeOne(ctx, id, func() (core.Purged, error) { return s.Store.Session(ctx, id, force) })
		switch {
		case isNotFound(err), errors.Is(err, core.ErrConflict):
		case err != nil:
			return removed, partialPurgeError(err, core.Purged{Removed: map[string]int64{"sessions": int64(removed)}})
		default:
			removed++
		}
	}
	return removed, nil
}

// removeOne removes a session, and then the responses kept for repeated requests that mention it.
func (s *Service) removeOne(ctx context.Context, id core.SessionID, remove func() (core.Purged, error)) (core.Purged, error) {
	gone, err := remove()
	if err != nil || gone.Removed["sessions"] == 0 {
		return gone, err
	}
	s.publishRemoval(ctx, id, gone)
	_, err = s.Store.Answers(ctx, "", "", []core.SessionID{id}, false)
	return gone, err
}

// recordAudit records in the audit log what was removed, completely or up to an error. It names
// neither sessions nor users, as these are gone. The removal is done: an entry that cannot be
// stored is in the server's log.
func (s *Service) recordAudit(ctx context.Context, j job, sessions int, gone core.Purged, cut error) {
	action, target := core.AuditUserPurged, hashedUser(j.user)
	if j.user == "" {
		action, target = core.AuditSessionsPurged, fmt.Sprintf("sessions: %d", sessions)
	}
	if cut != nil && len(gone.Removed)+len(gone.Emptied) == 0 || j.user == "" && sessions == 0 {
		return // nothing was done
	}
	err := s.Audit.Add(ctx, core.AuditEntry{Actor: cmp.Or(j.Actor, actor), Action: action, Owner: j.owner, Target: target},
		map[string]any{"removed": gone.Removed, "emptied": gone.Emptied, "complete": cut == nil})
	if err != nil {
		s.Logger.ErrorContext(ctx, "purge not recorded in the audit log", "action", action, "err", err)
	}
}

// actor is who purges unless another actor is named.
const actor = "cli"

// hashedUser names a user who is to be forgotten: a reader who knows the id can find the entry,
// others learn nothing.
func hashedUser(user string) string { return "user sha256:" + core.SecretHash(user)[:12] }

// How often abandoned sessions are searched for, and how many at a time.
const (
	recoverEvery = 5 * time.Second
	recoverBatch = 20
)

// Run removes what processes left behind that died, or lost their database, during an import, a
// fork or a purge. It sweeps immediately and then every 5 s, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	return core.Every(ctx, recoverEvery, s.recoverAll)
}

// recoverAll removes what was left behind in the sessions that are abandoned now, or the sessions.
func (s *Service) recoverAll(ctx context.Context) {
	ids, err := s.Store.Abandoned(ctx, s.Worker, recoverBatch)
	for _, id := range ids {
		var gone core.Purged
		if gone, err = s.removeOne(ctx, id, func() (core.Purged, error) { return s.Store.Recover(ctx, id, s.Worker) }); err != nil {
			break
		}
		s.Logger.InfoContext(ctx, "abandoned session recovered", slog.String("session_id", string(id)), slog.Bool("removed", gone.Removed["sessions"] > 0))
	}
	if err != nil && ctx.Err() == nil {
		s.Logger.WarnContext(ctx, "abandoned sessions not recovered", slog.Any("err", err))
	}
}
