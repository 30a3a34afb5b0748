package crash_test

import (
	"sync"

	"bobbin/app/core"
	"bobbin/tests/provider"
)

// stage is what happens to a message on its way to its answer. A killer waits for it.
type stage string

const (
	stageBoot    stage = "boot"    // the process starts, or takes over what it finds
	stageAccept  stage = "accept"  // a message is sent, nobody has heard that it is accepted
	stageRun     stage = "run"     // its run has begun
	stagePrompt  stage = "prompt"  // the provider has the prompt
	stageStream  stage = "stream"  // half of the answer is sent
	stageTool    stage = "tool"    // the provider sends a tool call
	stageSummary stage = "summary" // the provider writes a summary
	stageApply   stage = "apply"   // the provider has sent a summary
	stageCommit  stage = "commit"  // the provider has sent an answer
	stageIdle    stage = "any"     // whatever goes on
)

// aims are what a killer waits for, in the order of the report; what it is there twice for is chosen twice as often.
var aims = []stage{
	stageBoot, stageAccept, stageAccept, stageRun, stagePrompt, stageStream, stageStream, stageTool, stageTool,
	stageSummary, stageSummary, stageApply, stageApply, stageCommit, stageCommit, stageIdle,
}

// board counts the stages that messages come to. Safe for concurrent use.
type board struct {
	mu     sync.Mutex
	count  map[stage]int    // guarded by mu
	wanted map[stage]target // guarded by mu
}

// target is what a killer waits for.
type target struct {
	count int
	met   chan struct{}
}

func newBoard() *board { return &board{count: map[stage]int{}, wanted: map[stage]target{}} }

// enter says that a message has come to the stage.
func (b *board) enter(s stage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count[s]++
	if w, ok := b.wanted[s]; ok && b.count[s] >= w.count {
		close(w.met)
		delete(b.wanted, s)
	}
}

// meet returns a channel that is closed when the stage is entered for the n-th time from now on.
func (b *board) meet(s stage, n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := target{count: b.count[s] + n, met: make(chan struct{})}
	b.wanted[s] = w
	return w.met
}

// provider hears from the provider.
func (b *board) provider(p provider.Point, a provider.Asked) {
	switch {
	case a.Summary && p == provider.PointEnd:
		b.enter(stageApply)
	case p == provider.PointEnd:
		b.enter(stageCommit)
	case !a.Summary || p == provider.PointSummary:
		b.enter(stage(p))
	}
}

// event hears of a session's events.
func (b *board) event(e core.Event) {
	if e.Type == core.EventRunStarted {
		b.enter(stageRun)
	}
}
