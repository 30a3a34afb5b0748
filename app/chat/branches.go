package chat

import (
	"cmp"
	"context"

	"bobbin/app/core"
)

// Regenerate has a message answered anew, on a branch of its own that begins at the
// user's message of that turn; the old answer stays. It is committed and runs like
// a message that is sent: see Send, whose errors apply. ErrUnprocessable where no
// user's message comes before; ErrConflict while there is a run, unless it
// interrupts the only one.
func (s *Service) Regenerate(ctx context.Context, scope core.Scope, r core.Regenerate) (core.Accepted, error) {
	user, err := userOf(scope, r.User)
	if err != nil {
		return core.Accepted{}, err
	}
	var f faults
	multitask := f.multitask(r.Multitask, true)
	f.name("client_message_id", r.ClientMessageID, s.limits.Name)
	f.name("user_id", user, s.limits.Name)
	s.checkModel(&f, r.Model)
	if err := f.Err(); err != nil {
		return core.Accepted{}, err
	}
	return s.begin(ctx, scope, core.AcceptRun{
		SessionID: r.SessionID, User: user, Model: r.Model, ClientMessageID: r.ClientMessageID, Answers: r.MessageID,
		Multitask: multitask, Worker: s.worker, MaxQueued: s.limits.Queued, MaxOwned: s.limits.Owned, MaxOfUser: s.ofUser(scope),
		Input: core.RunInput{Source: cmp.Or(r.Source, core.SourceAPI)},
	})
}

// Select makes the branch through the message the current path of its session, down
// to the newest message below it, and returns the session; one that is on the path
// already changes nothing. ErrConflict while the session has a run, ErrNotFound also
// for a message that was deleted.
func (s *Service) Select(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Session, error) {
	selected, events, err := s.branches.Select(ctx, scope, session, id)
	if err != nil {
		return core.Session{}, err
	}
	s.feed.Publish(context.WithoutCancel(ctx), events)
	return selected, nil
}

// Fork makes a new session with the log of another one up to a message, or with its
// current path, and with the summary that is valid there. Later changes of one do
// not touch the other, deletions neither.
func (s *Service) Fork(ctx context.Context, scope core.Scope, in core.ForkSession) (core.Session, error) {
	source, err := s.sessions.Get(ctx, scope, in.SessionID)
	if err != nil {
		return core.Session{}, err
	}
	const mark = " (fork)"
	if in.Title = source.Title; in.Title != "" {
		in.Title = core.Clip(in.Title, s.limits.Title-len(mark)) + mark
	}
	return s.branches.Fork(ctx, scope, in)
}

// DeleteMessage is a user's own deletion: nothing of the message's content is left
// in its session, nor in the summaries that covered it. A tool call goes with its
// results. It may be repeated. ErrConflict while the session has a run.
func (s *Service) DeleteMessage(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) error {
	events, err := s.branches.Delete(ctx, scope, session, id)
	if err != nil {
		return err
	}
	s.feed.Publish(context.WithoutCancel(ctx), events)
	return nil
}

// Pin has a message in every prompt, whatever is summarized, or no longer. It
// returns the message. ErrContextFloor when pinned messages would leave prompts no
// room, ErrUnprocessable for the system's messages.
func (s *Service) Pin(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error) {
	if pinned {
		m, err := s.messages.Get(ctx, scope, session, id)
		if err != nil {
			return core.Message{}, err
		}
		if !m.Pinned && m.Role != core.RoleSystem && m.DeletedAt == nil { // storage refuses the others
			if err := s.keeper.CheckPin(ctx, scope, session, m); err != nil {
				return core.Message{}, err
			}
		}
	}
	m, events, err := s.branches.Pin(ctx, scope, session, id, pinned)
	if err != nil {
		return core.Message{}, err
	}
	s.feed.Publish(context.WithoutCancel(ctx), events)
	return m, nil
}
