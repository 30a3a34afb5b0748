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

// nextRun returns the state at the begin of the session's next run.
func nextRun() AgentState {
	return AgentState{
		Turn: compaction.Turn{Session: core.Session{ID: "s"}}, Run: core.Run{ID: "n", SessionID: "s", Attempt: 1, FirstEvent: 8},
		UserMessage: core.Message{ID: "m", Seq: 3, ParentID: "a", Role: core.RoleUser, Content: "next"},
	}
}

// The tail is used if nothing has happened in the session since, and only then.
func TestTailCache(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*AgentState)
		want   bool
	}{
		{"the next message", func(*AgentState) {}, true},
		{"something happened between", func(s *AgentState) { s.Run.FirstEvent++ }, false},
		{"another summary", func(s *AgentState) { s.Session.SummaryThroughID = new(core.MessageID("q")) }, false},
		{"a second attempt", func(s *AgentState) { s.Run.Attempt = 2 }, false},
		{"another branch", func(s *AgentState) { s.UserMessage.ParentID = "q" }, false},
		{"a message between", func(s *AgentState) { s.UserMessage.Seq++ }, false},
		{"not in the log", func(s *AgentState) { s.UserMessage.Seq = 0 }, false},
		{"another session", func(s *AgentState) { s.Run.SessionID = "o" }, false},
	} {
		c := NewTailCache()
		c.storeTail(endedRun("s", "answer"), 7)
		s := nextRun()
		tt.change(&s)
		got, ok := c.takeTail(s)
		var ids strings.Builder
		for _, m := range got.messages {
			ids.WriteString(string(m.ID))
		}
		if ok != tt.want || ok && ids.String() != "qam" {
			t.Errorf("%s: got %s, %v, want %v", tt.name, ids.String(), ok, tt.want)
		}
	}
	var none *TailCache
	none.storeTail(endedRun("s", "answer"), 7)
	if _, ok := none.takeTail(nextRun()); ok {
		t.Error("no cache has a tail")
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

// A long log, of whose old messages the texts are in storage, is not loaded for each run.
func TestTailCacheKeepsALongLog(t *testing.T) {
	t.Parallel()
	c := NewTailCache()
	long := endedRun("s", "answer")
	old := core.Message{ID: "o", Seq: 1, Role: core.RoleAssistant, Content: strings.Repeat("x", 1000)}.WithoutTexts()
	long.History = slices.Repeat([]core.Message{old}, 5000)
	c.storeTail(long, 7)
	got, ok := c.takeTail(nextRun())
	if !ok || len(got.messages) != 5003 || got.messages[0].Unloaded != 1000 {
		t.Errorf("got %d messages, %v, want all", len(got.messages), ok)
	}
}
