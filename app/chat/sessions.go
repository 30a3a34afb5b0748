package chat

import (
	"cmp"
	"context"
	"errors"
	"time"

	"bobbin/app/core"
)

// CreateSession makes a new, empty session of the scope's owner from the fields
// that callers choose: agent (empty = the default agent), model, title, user,
// source (empty = api), time zone, instructions, metadata, tags, pinned, temporary and webhook. All others are
// ignored. ErrInvalid says what is wrong with which field, and names the agents
// that exist; ErrForbidden is for another user than the caller's own.
func (s *Service) CreateSession(ctx context.Context, tenant core.Tenant, in core.Session) (core.Session, error) {
	session, err := s.newSession(tenant, in)
	if err == nil {
		err = s.Stored.Admit(ctx, tenant, session.NewBytes())
	}
	if err != nil {
		return core.Session{}, err
	}
	if session, err = s.Sessions.Create(ctx, session); err == nil {
		s.Feed.PublishHead(ctx, core.Tenant{Owner: session.Owner, User: session.UserID}, session.ID)
	}
	return session, err
}

// newSession returns the session that CreateSession stores.
func (s *Service) newSession(tenant core.Tenant, in core.Session) (core.Session, error) {
	user, err := userOf(tenant, in.UserID)
	if err != nil {
		return core.Session{}, err
	}
	session := core.Session{
		Owner: tenant.Owner, Agent: cmp.Or(in.Agent, s.DefaultAgent), Model: in.Model, UserID: user, Source: cmp.Or(in.Source, core.SourceAPI),
		Timezone: in.Timezone, Metadata: in.Metadata, Pinned: in.Pinned, Temporary: in.Temporary, Webhook: in.Webhook,
		Speakers: in.Speakers,
	}
	var f faults
	session.Title = f.Text("title", in.Title, maxSessionTitle)
	session.Instructions = f.Text("instructions", in.Instructions, maxInstructions)
	f.ID("user_id", user, maxName)
	session.Tags = f.checkTags(in.Tags)
	f.Metadata(in.Metadata, maxMetadata)
	f.checkTimezone(session.Timezone)
	s.checkAgent(&f, session.Agent)
	s.checkModel(&f, session.Model)
	f.checkWebhook(in.Webhook, s.PrivateWebhooks)
	return session, f.Err()
}

// UpdateSession changes the fields that the patch names, by the rules of
// CreateSession; an empty agent is the default agent. It tells those who watch.
// Runs that have begun are not touched. ErrContextFloor refuses another model into which
// the conversation cannot fit, unless the patch has Force.
func (s *Service) UpdateSession(ctx context.Context, tenant core.Tenant, id core.SessionID, patch core.SessionPatch) (core.Session, error) {
	patch, err := s.checkPatch(patch)
	if err != nil {
		return core.Session{}, err
	}
	session, err := s.Sessions.Get(ctx, tenant, id)
	if err == nil {
		err = s.checkFit(ctx, tenant, session, patch)
	}
	more := 0 // bytes
	if patch.Instructions != nil {
		more += len(*patch.Instructions) - len(session.Instructions)
	}
	if patch.Metadata != nil {
		more += len(patch.Metadata) - len(session.Metadata)
	}
	if err == nil && more > 0 {
		err = s.Stored.Admit(ctx, tenant, int64(more))
	}
	if err != nil {
		return core.Session{}, err
	}
	session, events, err := s.Sessions.Update(ctx, tenant, id, patch)
	return session, s.publish(ctx, events, err)
}

// checkFit refuses another model whose window cannot hold what cannot be shrunk: the
// system prompt, the tools and what is pinned. A patch that changes the agent, too, is
// not checked: the new one has another prompt and other tools.
func (s *Service) checkFit(ctx context.Context, tenant core.Tenant, session core.Session, p core.SessionPatch) (err error) {
	if p.Model == nil || p.Agent != nil || p.Force || session.Model == *p.Model {
		return nil
	}
	name := *p.Model
	if name == "" { // the agent's; without an agent nothing can be said: the next message will tell
		_, model, err := s.sessionAgent(core.SessionAgent{Agent: session.Agent}, "")
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		name = model.Info().Name
	}
	plan, err := s.Inspector.DryRun(ctx, tenant, session.ID, core.PlanPreview{Model: name})
	if err != nil || plan.Floor == nil {
		return err
	}
	return &core.Error{Kind: core.ErrContextFloor, Code: "context_floor", Fields: []core.FieldError{{Field: "model", Detail: "is too small for this conversation"}},
		Message: plan.Floor.Detail + `; "force": true changes the model nevertheless`}
}

// checkPatch returns the patch as it is to be stored.
func (s *Service) checkPatch(p core.SessionPatch) (core.SessionPatch, error) {
	var f faults
	if p.Title != nil {
		p.Title = new(f.Text("title", *p.Title, maxSessionTitle))
	}
	if p.Instructions != nil {
		p.Instructions = new(f.Text("instructions", *p.Instructions, maxInstructions))
	}
	if p.Agent != nil && *p.Agent == "" {
		p.Agent = new(s.DefaultAgent)
	}
	if p.Agent != nil {
		s.checkAgent(&f, *p.Agent)
	}
	if p.Model != nil {
		s.checkModel(&f, *p.Model)
	}
	if p.Timezone != nil {
		f.checkTimezone(*p.Timezone)
	}
	f.Metadata(p.Metadata, maxMetadata)
	if p.Tags != nil {
		p.Tags = f.checkTags(p.Tags)
	}
	if p.Webhook != nil && *p.Webhook != (core.Webhook{}) { // that is none any more
		f.checkWebhook(p.Webhook, s.PrivateWebhooks)
	}
	return p, f.Err()
}

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
