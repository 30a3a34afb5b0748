package chat

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// forkPoll is how often OpenSession looks for a fork that another process is making.
const forkPoll = 50 * time.Millisecond

// OpenSession returns the session that a surface knows by the alias. If there is none, it
// creates the session by the rules of CreateSession; concurrent calls return one session. An
// archived session takes no messages: the alias moves to a fork of it.
func (s *Service) OpenSession(ctx context.Context, tenant core.Tenant, a core.Alias, in core.Session) (core.Session, error) {
	in, err := s.newSession(tenant, in)
	if err == nil {
		err = s.Stored.Admit(ctx, tenant, 0)
	}
	if err != nil {
		return core.Session{}, err
	}
	for {
		session, err := s.Aliases.Open(ctx, a, in)
		switch {
		case err != nil:
			return core.Session{}, err
		case tenant.User != "" && session.UserID != tenant.User:
			return core.Session{}, core.Errorf(core.ErrNotFound, "session %q does not exist", a.Name)
		case session.ArchivedAt == nil:
			return session, nil
		}
		if err := s.continueArchived(ctx, tenant, a, session); err != nil {
			return core.Session{}, err
		}
	}
}

// continueArchived forks the archived session and moves the alias to the fork. Whoever forks
// it concurrently makes the same fork.
func (s *Service) continueArchived(ctx context.Context, tenant core.Tenant, a core.Alias, session core.Session) error {
	id := session.SuccessorID()
	_, err := s.fork(ctx, tenant, session, core.ForkSession{ID: id, SessionID: session.ID, Title: session.Title})
	if errors.Is(err, core.ErrConflict) { // it exists, or the session is busy
		if _, lost := s.Sessions.Get(ctx, tenant, id); lost != nil {
			if ended := core.Sleep(ctx, forkPoll); ended != nil {
				return errors.Join(err, ended)
			}
			return nil // it is worth looking again
		}
		err = nil
	}
	if err != nil {
		return err
	}
	if err = s.Aliases.Rebind(ctx, session.Owner, a, session.ID, id); errors.Is(err, core.ErrStale) {
		return nil // another process has moved it
	}
	return err
}
