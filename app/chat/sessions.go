package chat

import (
	"context"

	"bobbin/app/core"
)

// CreateSession makes a new, empty session of the scope's owner from the fields
// that callers choose: agent (empty = the default agent), model, title, user,
// source (empty = api), time zone, instructions, metadata and webhook. All others are
// ignored. ErrInvalid says what is wrong with which field, and names the agents
// that exist; ErrForbidden is for another user than the caller's own.
func (s *Service) CreateSession(ctx context.Context, scope core.Scope, in core.Session) (core.Session, error) {
	user, err := userOf(scope, in.UserID)
	if err != nil {
		return core.Session{}, err
	}
	session := core.Session{
		Owner: scope.Owner, Agent: in.Agent, Model: in.Model, UserID: user, Source: in.Source,
		Timezone: in.Timezone, Metadata: in.Metadata, Webhook: in.Webhook,
	}
	if session.Agent == "" {
		session.Agent = s.defaultAgent
	}
	if session.Source == "" {
		session.Source = core.SourceAPI
	}
	var f faults
	session.Title = f.Text("title", in.Title, s.limits.Title)
	session.Instructions = f.Text("instructions", in.Instructions, s.limits.Instructions)
	f.name("user_id", user, s.limits.Name)
	f.Metadata(in.Metadata, s.limits.Metadata)
	f.timezone(session.Timezone)
	s.checkAgent(&f, session.Agent)
	s.checkModel(&f, session.Model)
	f.webhook(in.Webhook, s.private)
	if err := f.Err(); err != nil {
		return core.Session{}, err
	}
	return s.sessions.Create(ctx, session)
}

// UpdateSession changes the fields that the patch names, by the rules of
// CreateSession; an empty agent is the default agent. It tells those who watch.
// Runs that have begun are not touched.
func (s *Service) UpdateSession(ctx context.Context, scope core.Scope, id core.SessionID, patch core.SessionPatch) (core.Session, error) {
	patch, err := s.checkPatch(patch)
	if err != nil {
		return core.Session{}, err
	}
	session, events, err := s.sessions.Update(ctx, scope, id, patch)
	if err != nil {
		return core.Session{}, err
	}
	s.feed.Publish(context.WithoutCancel(ctx), events)
	return session, nil
}

// checkPatch returns the patch as it is to be stored.
func (s *Service) checkPatch(p core.SessionPatch) (core.SessionPatch, error) {
	var f faults
	if p.Title != nil {
		p.Title = new(f.Text("title", *p.Title, s.limits.Title))
	}
	if p.Instructions != nil {
		p.Instructions = new(f.Text("instructions", *p.Instructions, s.limits.Instructions))
	}
	if p.Agent != nil && *p.Agent == "" {
		p.Agent = new(s.defaultAgent)
	}
	if p.Agent != nil {
		s.checkAgent(&f, *p.Agent)
	}
	if p.Model != nil {
		s.checkModel(&f, *p.Model)
	}
	if p.Timezone != nil {
		f.timezone(*p.Timezone)
	}
	f.Metadata(p.Metadata, s.limits.Metadata)
	if p.Webhook != nil && *p.Webhook != (core.Webhook{}) { // that is none any more
		f.webhook(p.Webhook, s.private)
	}
	return p, f.Err()
}

// ArchiveSession puts a session away: it takes no new messages and is not listed.
// All that is in it stays, and a run that has begun goes on. It may be repeated.
func (s *Service) ArchiveSession(ctx context.Context, scope core.Scope, id core.SessionID) error {
	return s.sessions.Archive(ctx, scope, id)
}
