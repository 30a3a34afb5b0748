package slack_test

import (
	"strings"
	"sync"
)

// barriers hold answers to questions with certain words.
type barriers struct {
	mu   sync.Mutex
	held map[string]barrier // guarded by mu
}

// barrier is closed until the test opens it.
type barrier struct{ asked, open chan struct{} }

// hold waits for the barrier of the question, if it has one.
func (g *barriers) hold(question string) {
	g.mu.Lock()
	var found barrier
	for mark, one := range g.held {
		if strings.Contains(question, mark) {
			found = one
			delete(g.held, mark)
		}
	}
	g.mu.Unlock()
	if found.asked != nil {
		close(found.asked)
		<-found.open
	}
}

func (g *barriers) add(mark string) barrier {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := barrier{make(chan struct{}), make(chan struct{})}
	g.held[mark] = one
	return one
}
