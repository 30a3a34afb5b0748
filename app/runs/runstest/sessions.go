package runstest

import (
	"context"
	"slices"

	"bobbin/app/core"
)

// Sessions is DB as repositories.Sessions.
type Sessions struct{ db *DB }

// SessionStore returns the sessions in db.
func (db *DB) SessionStore() Sessions { return Sessions{db} }

// Create stores a new session.
func (s Sessions) Create(ctx context.Context, in core.Session) (core.Session, error) {
	err := s.db.do(ctx, "Create", func() error {
		in.ID, in.CreatedAt = core.NewID[core.SessionID](), core.Now()
		in.UpdatedAt = in.CreatedAt
		s.db.sessions[in.ID] = &log{session: in}
		return nil
	})
	return in, err
}

// Get returns a session.
func (s Sessions) Get(ctx context.Context, scope core.Scope, id core.SessionID) (core.Session, error) {
	var out core.Session
	err := s.db.do(ctx, "Sessions.Get", func() error {
		l, err := s.db.visible(scope, id)
		if err == nil {
			out = l.session
		}
		return err
	})
	return out, err
}

// Update changes title, agent and model, and writes session.updated.
func (s Sessions) Update(ctx context.Context, scope core.Scope, id core.SessionID, p core.SessionPatch) (core.Session, []core.Event, error) {
	var out core.Session
	var events []core.Event
	err := s.db.do(ctx, "Update", func() error {
		l, err := s.db.visible(scope, id)
		if err != nil {
			return err
		}
		for field, value := range map[*string]*string{
			&l.session.Title: p.Title, &l.session.Agent: p.Agent, &l.session.Model: p.Model,
			&l.session.Timezone: p.Timezone, &l.session.Instructions: p.Instructions,
		} {
			if value != nil {
				*field = *value
			}
		}
		if p.Metadata != nil {
			l.session.Metadata = p.Metadata
		}
		l.emit(core.NewEvent(id, "", core.EventSessionUpdated, struct{}{}))
		out, events = l.session, l.fresh
		return nil
	})
	return out, events, err
}

// Archive puts a session away.
func (s Sessions) Archive(ctx context.Context, scope core.Scope, id core.SessionID) error {
	return s.db.do(ctx, "Archive", func() error {
		l, err := s.db.visible(scope, id)
		if err == nil && l.session.ArchivedAt == nil {
			now := core.Now()
			l.session.ArchivedAt = &now
		}
		return err
	})
}

// Messages is DB as repositories.Messages.
type Messages struct{ db *DB }

// MessageStore returns the messages in db.
func (db *DB) MessageStore() Messages { return Messages{db} }

// GetMessagesAfter returns the messages after the given one.
func (s Messages) GetMessagesAfter(ctx context.Context, scope core.Scope, session core.SessionID, after core.MessageID) ([]core.Message, error) {
	var out []core.Message
	err := s.db.do(ctx, "GetMessagesAfter", func() error {
		l, err := s.db.visible(scope, session)
		if err != nil {
			return err
		}
		if after == "" {
			out = slices.Clone(l.messages)
			return nil
		}
		for i, m := range l.messages {
			if m.ID == after {
				out = append(out, l.messages[i+1:]...)
				return nil
			}
		}
		return core.Errorf(core.ErrNotFound, "message %s does not exist", after)
	})
	return out, err
}

// Events is DB as repositories.Events.
type Events struct{ db *DB }

// EventStore returns the events in db.
func (db *DB) EventStore() Events { return Events{db} }

// After returns the events after a number.
func (s Events) After(ctx context.Context, session core.SessionID, after int64, limit int) ([]core.Event, error) {
	var out []core.Event
	err := s.db.do(ctx, "After", func() error {
		for _, e := range s.db.sessions[session].events {
			if e.Seq > after && len(out) < limit {
				out = append(out, e)
			}
		}
		return nil
	})
	return out, err
}

// Last returns the number of the newest event.
func (s Events) Last(ctx context.Context, scope core.Scope, session core.SessionID) (int64, error) {
	var out int64
	err := s.db.do(ctx, "Last", func() error {
		l, err := s.db.visible(scope, session)
		if err == nil {
			out = l.session.LastEventSeq
		}
		return err
	})
	return out, err
}

// Forget removes the session's events up to a number, as the retention does.
func (s Events) Forget(session core.SessionID, through int64) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	l := s.db.sessions[session]
	l.events = slices.DeleteFunc(l.events, func(e core.Event) bool { return e.Seq <= through })
	l.forgotten = through
}

// LastOf returns the numbers of the newest events of the sessions that exist.
func (s Events) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	out := map[core.SessionID]int64{}
	err := s.db.do(ctx, "LastOf", func() error {
		for _, id := range sessions {
			if l := s.db.sessions[id]; l != nil {
				out[id] = l.session.LastEventSeq
			}
		}
		return nil
	})
	return out, err
}

// FirstOfRun returns the number of the run's oldest event, 0 if there is none.
func (s Events) FirstOfRun(ctx context.Context, session core.SessionID, run core.RunID) (int64, error) {
	var out int64
	err := s.db.do(ctx, "FirstOfRun", func() error {
		for _, e := range s.db.sessions[session].events {
			if e.RunID == run && out == 0 {
				out = e.Seq
			}
		}
		return nil
	})
	return out, err
}
