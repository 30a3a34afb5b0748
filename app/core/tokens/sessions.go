package tokens

import "bobbin/app/core"

// generationSessions bounds the conversations of half of a generations: about 1 MB.
const generationSessions = 4096

// key is one model in one conversation.
type key struct {
	model   string
	session core.SessionID
}

// generations are what is known of conversations, in two halves: entries are written
// to the young one; when that is full it becomes the old one, and those that nobody
// asked for since are forgotten.
type generations struct {
	young, old map[key]*measured
}

// get returns what is known of the conversation; nil if nothing is.
func (g *generations) get(k key) *measured {
	if m := g.young[k]; m != nil {
		return m
	}
	m := g.old[k]
	if m != nil {
		g.put(k, m)
	}
	return m
}

// of returns the conversation's entry, new if there is none.
func (g *generations) of(k key) *measured {
	m := g.get(k)
	if m == nil {
		m = &measured{}
		g.put(k, m)
	}
	return m
}

func (g *generations) put(k key, m *measured) {
	if len(g.young) >= generationSessions {
		g.old, g.young = g.young, nil
	}
	if g.young == nil {
		g.young = map[key]*measured{}
	}
	g.young[k] = m
}
