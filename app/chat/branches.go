package chat

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"bobbin/app/core"
)

// Regenerate has a message answered anew, on a branch of its own that begins at the
// user's message of that turn; the old answer stays. It is committed and runs like
// a message that is sent: see Send, whose errors apply. ErrUnprocessable where no
// user's message comes before; ErrConflict while there is a run, unless it
// interrupts the only one.
func (s *Service) Regenerate(ctx context.Context, tenant core.Tenant, r core.Regenerate) (core.Accepted, error) {
	user, err := userOf(tenant, r.User)
	if err != nil {
		return core.Accepted{}, err
	}
	var f faults
	multitask := f.checkMultitask(r.Multitask, true)
	f.ID("client_message_id", r.ClientMessageID, maxName)
	f.ID("user_id", user, maxName)
	s.checkModel(&f, r.Model)
	options := f.checkOptions(r.Options)
	if err := f.Err(); err != nil {
		return core.Accepted{}, err
	}
	return s.startRun(ctx, tenant, core.AcceptRun{
		SessionID: r.SessionID, User: user, Model: r.Model, ClientMessageID: r.ClientMessageID, RequestHash: r.RequestHash, Answers: r.MessageID,
		Multitask: multitask, MaxQueued: s.Limits.Queued, MaxOwned: s.Limits.Owned, MaxOfUser: s.ofUser(tenant), Options: options,
		Input: core.RunInput{Source: cmp.Or(r.Source, core.SourceAPI)},
	})
}

// Select makes the branch through the message the current path of its session, down
// to the newest message below it, and returns the session; one that is on the path
// already changes nothing. ErrConflict while the session has a run, ErrNotFound also
// for a message that was deleted.
func (s *Service) Select(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (core.Session, error) {
	selected, events, err := s.Branches.Select(ctx, tenant, session, id)
	return selected, s.publish(ctx, events, err)
}

// Fork makes a new session with the log of another one up to a message, or with its
// current path, and with the summary that is valid there. Later changes of one do
// not touch the other, deletions neither.
func (s *Service) Fork(ctx context.Context, tenant core.Tenant, in core.ForkSession) (core.Session, error) {
	source, err := s.Sessions.Get(ctx, tenant, in.SessionID)
	if err != nil {
		return core.Session{}, err
	}
	const mark = " (fork)"
	if in.Title = source.Title; in.Title != "" {
		in.Title = core.Clip(in.Title, maxSessionTitle-len(mark)) + mark
	}
	fork, err := s.fork(ctx, tenant, source, in)
	if err == nil {
		s.Feed.PublishHead(ctx, core.Tenant{Owner: fork.Owner, User: fork.UserID}, fork.ID)
	}
	return fork, err
}

// fork forks the source within the caller's limits.
func (s *Service) fork(ctx context.Context, tenant core.Tenant, source core.Session, in core.ForkSession) (core.Session, error) {
	release, err := s.forks.Place(ctx, tenant)
	defer release()
	if err == nil {
		err = s.Stored.AdmitCopy(ctx, tenant, source.NewBytes()+source.StoredBytes)
	}
	if err != nil {
		return core.Session{}, err
	}
	return s.Branches.Fork(ctx, tenant, in)
}

// DeleteMessage is a user's own deletion: nothing of the message's content is left
// in its session, nor in the summaries that covered it. A tool call goes with its
// results. It may be repeated. ErrConflict while the session has a run.
func (s *Service) DeleteMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) error {
	events, err := s.Branches.Delete(ctx, tenant, session, id)
	return s.publish(ctx, events, err)
}

// Revise replaces the text of a user's message in place, and returns the message with its
// revisions: nothing runs, no branch begins, and what was derived from the old text is
// removed as by DeleteMessage. The same text changes nothing. ErrConflict while the session
// has a run, also for a message that is still queued; ErrUnprocessable for messages that are
// not a user's; ErrTooLarge and ErrInvalid for the text as of Send.
func (s *Service) Revise(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, content string) (core.Message, error) {
	clean, err := s.limitContent("message", content)
	if err != nil {
		return core.Message{}, err
	}
	m, err := s.Messages.Get(ctx, tenant, session, id)
	if err != nil && !errors.Is(err, core.ErrNotFound) { // it may be queued: storage knows
		return core.Message{}, err
	}
	if strings.TrimSpace(clean) == "" && len(m.Parts) == 0 {
		return core.Message{}, core.Faults{{Field: "content", Detail: "is empty"}}.Err()
	}
	if err := s.Stored.Admit(ctx, tenant, int64(len(clean))); err != nil {
		return core.Message{}, err
	}
	tokens := s.Counter.Message(core.Message{Role: core.RoleUser, Content: clean, Parts: m.Parts})
	m, events, err := s.Branches.Revise(ctx, tenant, core.ReviseMessage{SessionID: session, MessageID: id, Content: clean, TokenCount: tokens})
	return m, s.publish(ctx, events, err)
}

// Pin has a message in every prompt, whatever is summarized, or no longer. It
// returns the message. ErrContextFloor when pinned messages would leave prompts no
// room, ErrUnprocessable for the system's messages.
func (s *Service) Pin(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, pinned bool) (core.Message, error) {
	if pinned {
		m, err := s.Messages.Get(ctx, tenant, session, id)
		if err != nil {
			return core.Message{}, err
		}
		if !m.Pinned && m.Role != core.RoleSystem && m.DeletedAt == nil { // storage refuses the others
			if err := s.Inspector.CheckPin(ctx, tenant, session, m); err != nil {
				return core.Message{}, err
			}
		}
	}
	m, events, err := s.Branches.Pin(ctx, tenant, session, id, pinned)
	return m, s.publish(ctx, events, err)
}

// UpdateMessage changes the metadata of a message, or what a person says of it, and
// returns the message. Nothing runs, and no branch begins.
func (s *Service) UpdateMessage(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID, p core.MessagePatch) (core.Message, error) {
	var f faults
	f.Metadata(p.Metadata, maxMetadata)
	more := len(p.Metadata)
	if p.Feedback != nil {
		p.Feedback = f.Feedback("", *p.Feedback)
		more += len(p.Feedback.Comment)
	}
	if err := f.Err(); err != nil {
		return core.Message{}, err
	}
	if more > 0 {
		if err := s.Stored.Admit(ctx, tenant, int64(more)); err != nil {
			return core.Message{}, err
		}
	}
	m, events, err := s.Branches.UpdateMessage(ctx, tenant, session, id, p)
	return m, s.publish(ctx, events, err)
}
