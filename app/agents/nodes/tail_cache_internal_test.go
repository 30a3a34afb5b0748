package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// endedRun returns the state at the end of a session's run.
func endedRun(session core.SessionID, text string) AgentState {
	return AgentState{
		Turn: compaction.Turn{Session: core.Session{ID: session}}, Run: core.Run{ID: "r", SessionID: session, Attempt: 1},
		UserMessage: core.Message{ID: "q", Seq: 1, Role: core.RoleUser, Content: "question"},
		RunMessages: []core.Message{{ID: "a", Seq: 2, Role: core.RoleAssistant, Content: text}},
	}
}

// The cache is bounded, and has no tails that storage returns with fewer texts.
func TestTailCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := NewTailCache()
	c.storeTail(endedRun("s", strings.Repeat("x", maxTailTexts)), 7)
	long := endedRun("s", "answer")
	long.History = slices.Repeat(long.RunMessages, maxTail/messageOverhead)
	c.storeTail(long, 7)
	if len(c.tails) > 0 {
		t.Error("a tail that is too long is kept")
	}
	const size = maxTailTexts / 2
	for i := range 3 * maxTails / size {
		c.storeTail(endedRun(core.SessionID(fmt.Sprint(i)), strings.Repeat("x", size)), 7)
		c.storeTail(endedRun(core.SessionID(fmt.Sprint(i)), strings.Repeat("x", size)), 8) // replaces it
	}
	if n := len(c.tails); n == 0 || c.bytes > maxTails || n*size > c.bytes || c.bytes > n*(size+4*messageOverhead) {
		t.Errorf("got %d tails of %d bytes, want at most %d bytes", n, c.bytes, maxTails)
	}
}
