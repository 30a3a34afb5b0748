package core

import "context"

// Alias is the name by which a surface knows a session: a thread of Slack, or an id that a
// client chose. An owner's aliases are unique per surface.
type Alias struct {
	Surface Source
	Name    string
}

// AliasStore stores the aliases of sessions.
type AliasStore interface {
	// Open returns the session of the alias, visible to the whole owner of s. If there is none,
	// it MUST store s and the alias together, so that concurrent calls return one session.
	Open(ctx context.Context, a Alias, s Session) (Session, error)
	// Rebind MUST return ErrStale unless the alias belongs to the session from.
	Rebind(ctx context.Context, owner string, a Alias, from, to SessionID) error
}

// SuccessorID returns the id of the session that continues this one when it is archived. It
// follows from the id alone, so that concurrent callers create one successor.
func (s Session) SuccessorID() SessionID {
	return SessionID(derivedID(string(s.ID), "successor "+string(s.ID)))
}
