package e2e_test

import (
	"strings"
	"sync"
	"testing"
)

// gate holds the answers to questions with the word "hold" in them open: half of
// such an answer is sent when arrived tells of it; the rest comes after open.
type gate struct {
	arrived chan string // the questions
	open    func()      // for good; may be called again
	opened  chan struct{}
}

func newGate(t testing.TB) *gate {
	g := &gate{arrived: make(chan string, 100), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	t.Cleanup(g.open) // the provider's handlers must end before it stops
	return g
}

// hold is provider.Options.Hold.
func (g *gate) hold(question string) {
	if strings.Contains(question, "hold") {
		g.arrived <- question
		<-g.opened
	}
}
