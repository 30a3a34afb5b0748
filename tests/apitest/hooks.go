package apitest

import (
	"cmp"
	"context"

	"bobbin/app/api/handlers"
	"bobbin/app/chat"
	"bobbin/app/core"
)

// call runs the hook of what a part is asked for.
func (w *World) call(ctx context.Context, name string) error {
	if hook := w.Hooks[name]; hook != nil {
		return hook(ctx)
	}
	return nil
}

// hooked returns the services with the world's hooks before their parts.
func (w *World) hooked(s handlers.Services) handlers.Services {
	s.Sessions, s.Messages, s.Runs, s.Search = sessions{s.Sessions, w}, messages{s.Messages, w}, runs{s.Runs, w}, search{s.Search, w}
	o := s.Chat.Options
	o.Sessions, o.Runs, o.Events = s.Sessions, s.Runs, events{o.Events, w}
	s.Chat = chat.New(o)
	return s
}

type sessions struct {
	core.SessionStore
	w *World
}

func (s sessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.Session, error) {
	if err := s.w.call(ctx, "Sessions.Get"); err != nil {
		return core.Session{}, err
	}
	return s.SessionStore.Get(ctx, tenant, id)
}

func (s sessions) List(ctx context.Context, tenant core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if err := s.w.call(ctx, "Sessions.List"); err != nil {
		return core.Page[core.Session]{}, err
	}
	return s.SessionStore.List(ctx, tenant, q)
}

func (s sessions) Create(ctx context.Context, in core.Session) (core.Session, error) {
	if err := s.w.call(ctx, "Sessions.Create"); err != nil {
		return core.Session{}, err
	}
	return s.SessionStore.Create(ctx, in)
}

type messages struct {
	core.MessageStore
	w *World
}

func (m messages) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.MessageQuery) (core.Page[core.Message], error) {
	page, err := m.MessageStore.List(ctx, tenant, session, q)
	return page, cmp.Or(m.w.call(ctx, "Messages.List"), err)
}

type runs struct {
	core.RunStore
	w *World
}

func (r runs) Get(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	if err := r.w.call(ctx, "Runs.Get"); err != nil {
		return core.Run{}, err
	}
	return r.RunStore.Get(ctx, tenant, id)
}

func (r runs) Pending(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.Run, error) {
	list, err := r.RunStore.Pending(ctx, tenant, session)
	return list, cmp.Or(r.w.call(ctx, "Runs.Pending"), err)
}

func (r runs) Accept(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	if err := r.w.call(ctx, "Runs.Accept"); err != nil {
		return core.Accepted{}, err
	}
	return r.RunStore.Accept(ctx, tenant, in)
}

func (r runs) RequestCancel(ctx context.Context, tenant core.Tenant, id core.RunID) (core.Run, []core.Event, error) {
	if err := r.w.call(ctx, "Runs.RequestCancel"); err != nil {
		return core.Run{}, nil, err
	}
	run, events, err := r.RunStore.RequestCancel(ctx, tenant, id)
	return run, events, cmp.Or(r.w.call(ctx, "Runs.CancelRequested"), err)
}

type search struct {
	core.SearchStore
	w *World
}

func (s search) Messages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	if err := s.w.call(ctx, "Search.Messages"); err != nil {
		return core.SearchPage{}, err
	}
	return s.SearchStore.Messages(ctx, tenant, q)
}

type events struct {
	core.EventStore
	w *World
}

func (e events) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (int64, error) {
	n, err := e.EventStore.Last(ctx, tenant, session)
	return n, cmp.Or(e.w.call(ctx, "Events.Last"), err)
}
