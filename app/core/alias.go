package core

// Alias is the name by which a surface knows a session: a thread of Slack, or an id that a
// client chose. An owner's aliases are unique per surface.
type Alias struct {
	Surface Source
	Name    string
}

// SuccessorID returns the id of the session that continues this one when it is archived. It
// follows from the id alone, so that concurrent callers create one successor.
func (s Session) SuccessorID() SessionID {
	return SessionID(derivedID(string(s.ID), "successor "+string(s.ID)))
}
