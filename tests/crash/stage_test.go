package crash_test

import (
	"strings"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/tests/provider"
)

// stage is where a message is on its way to its answer. A killer waits for one.
type stage string

const (
	stageBoot    stage = "boot"    // the process starts, or takes over what it finds
	stageIdle    stage = "any"     // whatever goes on
	stageAccept  stage = "accept"  // the message is sent, nobody has heard that it is accepted
	stageQueued  stage = "queued"  // it waits for its turn
	stageRun     stage = "run"     // its run has begun or goes on, the provider is not asked (yet)
	stagePrompt  stage = "prompt"  // the provider has the prompt
	stageStream  stage = "stream"  // half of the answer is sent
	stageTool    stage = "tool"    // the provider sent a tool call, nobody has heard of the result
	stageSummary stage = "summary" // the provider writes a summary
	stageApply   stage = "apply"   // the provider has sent a summary, nobody has heard that it is stored
	stageCommit  stage = "commit"  // the provider has sent all, nobody has heard of the end
)

// justNow is how long a summary that was sent may be on its way: it takes about 30 ms to store one.
const justNow = 60 * time.Millisecond

// stages returns the stages in the order in which the report shows them.
func stages() []stage {
	return []stage{stageBoot, stageAccept, stageQueued, stageRun, stagePrompt, stageStream, stageTool, stageSummary, stageApply, stageCommit, stageIdle}
}

// board knows the stage of every message that is not answered. Messages go by
// their mark, the first word of their content. Safe for concurrent use.
type board struct {
	mu     sync.Mutex
	at     map[string]stage         // by mark; guarded by mu
	began  time.Time                // when the present process was started; guarded by mu
	count  map[stage]int            // how often a stage was entered; guarded by mu
	wanted map[stage]target         // guarded by mu
	booked map[core.RunID]bool      // runs that have begun and not ended; guarded by mu
	owed   map[core.RunID]time.Time // the kill after which no event has come; guarded by mu
	resume []time.Duration          // start → first event of each resumed run; guarded by mu
}

// target is what a killer waits for.
type target struct {
	count int
	met   chan struct{}
}

func newBoard() *board {
	return &board{
		at: map[string]stage{}, count: map[stage]int{}, wanted: map[stage]target{},
		booked: map[core.RunID]bool{}, owed: map[core.RunID]time.Time{},
	}
}

// mark returns what a message goes by.
func mark(content string) string {
	m, _, _ := strings.Cut(content, " ")
	return m
}

// enter says that the message has come to the stage.
func (b *board) enter(mark string, s stage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at[mark] = s
	b.count[s]++
	if w, ok := b.wanted[s]; ok && b.count[s] >= w.count {
		close(w.met)
		delete(b.wanted, s)
	}
}

// accepted says that the message was heard to be accepted. What comes from the
// provider may have been quicker.
func (b *board) accepted(mark string, s stage) {
	b.mu.Lock()
	now := b.at[mark]
	b.mu.Unlock()
	if now == stageAccept || now == stageQueued {
		b.enter(mark, s)
	}
}

// done says that the message was answered.
func (b *board) done(mark string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.at, mark)
}

// meet returns a channel that is closed when the stage is entered for the n-th
// time from now on.
func (b *board) meet(s stage, n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := target{count: b.count[s] + n, met: make(chan struct{})}
	b.wanted[s] = w
	return w.met
}

// provider hears from the provider.
func (b *board) provider(p provider.Point, a provider.Asked) {
	m := mark(a.Question)
	switch {
	case a.Summary && p == provider.PointSummary:
		b.enter(a.Question, stageSummary)
	case a.Summary && p == provider.PointEnd:
		b.enter(a.Question, stageApply)
	case a.Summary:
	case p == provider.PointPrompt:
		b.enter(m, stagePrompt)
	case p == provider.PointStream:
		b.enter(m, stageStream)
	case p == provider.PointTool:
		b.enter(m, stageTool)
	case p == provider.PointEnd:
		b.mu.Lock()
		streamed := b.at[m] == stageStream
		b.mu.Unlock()
		if streamed {
			b.enter(m, stageCommit)
		}
	}
}

// event hears of a session's events.
func (b *board) event(e core.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if killed, ok := b.owed[e.RunID]; ok && e.At.After(killed) {
		b.resume = append(b.resume, time.Since(b.began))
		delete(b.owed, e.RunID)
	}
	switch e.Type {
	case core.EventRunStarted:
		b.booked[e.RunID] = true
	case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		delete(b.booked, e.RunID)
		delete(b.owed, e.RunID) // it had ended before the kill, and nobody had heard of it
	}
}

// killed says that the process was killed, and returns how many messages (or
// summaries) were at each stage. The runs that had begun are owed an event after the restart.
func (b *board) killed(at time.Time) map[stage]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	met := map[stage]int{}
	for m, s := range b.at {
		met[s]++
		switch s {
		case stageAccept, stageQueued:
		case stageSummary, stageApply:
			delete(b.at, m)
		default:
			b.at[m] = stageRun
		}
	}
	for run := range b.booked {
		b.owed[run] = at
	}
	clear(b.wanted)
	return met
}

// started says that the next process begins.
func (b *board) started() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began = time.Now()
}

// owing returns the runs that have not gone on since the last kill.
func (b *board) owing() []core.RunID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var runs []core.RunID
	for run := range b.owed {
		runs = append(runs, run)
	}
	return runs
}

// resumed returns the time from the start of the process to the first event of each resumed run.
func (b *board) resumed() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Duration(nil), b.resume...)
}
