package crash_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// gate holds the first request that passes a point until it is opened.
type gate struct {
	reached, opened chan struct{}
	once            sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{reached: make(chan struct{}), opened: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// pass is what a provider calls at the point.
func (g *gate) pass() {
	select {
	case g.reached <- struct{}{}:
		<-g.opened
	case <-g.opened:
	}
}

// writeAgent writes the file of an agent.
func writeAgent(t *testing.T, p place, name, text string) {
	t.Helper()
	dir := filepath.Join(p.dataDir, "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
