package tokens

import "bobbin/app/core"

// generationSessions bounds the conversations of one generation: about 1 MB.
const generationSessions = 4096

// sessionKey is one model in one conversation.
type sessionKey struct {
	model   string
	session core.SessionID
}

// sessionCalibrations holds the calibrations of conversations in two generations: new
// entries go into the young one. When it is full, it replaces the old one, whose unused
// entries are dropped.
type sessionCalibrations struct {
	young, old map[sessionKey]*calibration
}

// get returns the conversation's entry; nil = none.
func (g *sessionCalibrations) get(k sessionKey) *calibration {
	if m := g.young[k]; m != nil {
		return m
	}
	m := g.old[k]
	if m != nil {
		g.put(k, m)
	}
	return m
}

// entryOf returns the conversation's entry, or creates it.
func (g *sessionCalibrations) entryOf(k sessionKey) *calibration {
	m := g.get(k)
	if m == nil {
		m = &calibration{}
		g.put(k, m)
	}
	return m
}

func (g *sessionCalibrations) put(k sessionKey, m *calibration) {
	if len(g.young) >= generationSessions {
		g.old, g.young = g.young, nil
	}
	if g.young == nil {
		g.young = map[sessionKey]*calibration{}
	}
	g.young[k] = m
}
