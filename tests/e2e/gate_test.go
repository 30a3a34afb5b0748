package e2e_test

import (
	"strings"
	"sync"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/provider"
)

// gate holds the answers to questions with the word "hold" in them open: half of
// such an answer is sent when arrived tells of it; the rest comes after open.
type gate struct {
	arrived chan string // the questions
	open    func()      // for good; may be called again
	opened  chan struct{}
}

// newHolding starts a provider that holds its answers, and returns its gate too.
func newHolding(t testing.TB) (*provider.Server, *gate) {
	g := &gate{arrived: make(chan string, 100), opened: make(chan struct{})}
	g.open = sync.OnceFunc(func() { close(g.opened) })
	p := apptest.NewProvider(t, provider.Options{Window: 8192, Hold: g.hold})
	t.Cleanup(g.open) // before the provider is stopped: its handlers must end
	return p, g
}

// hold is provider.Options.Hold.
func (g *gate) hold(question string) {
	if strings.Contains(question, "hold") {
		g.arrived <- question
		<-g.opened
	}
}
