package nodes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

func calls(ids ...string) core.Message {
	m := core.Message{Role: core.RoleAssistant}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, core.ToolCall{ID: id})
	}
	return m
}

func result(id string) core.Message { return core.Message{Role: core.RoleTool, ToolCallID: id} }

// What comes next follows from the messages.
func TestNext(t *testing.T) {
	t.Parallel()
	text := core.Message{Role: core.RoleAssistant, Content: "done"}
	for name, c := range map[string]struct {
		log       []core.Message
		open      []string
		answered  bool
		iteration int
	}{
		"nothing":                   {nil, nil, false, 0},
		"calls":                     {[]core.Message{calls("a", "b")}, []string{"a", "b"}, false, 1},
		"the second result":         {[]core.Message{calls("a", "b", "c"), result("b")}, []string{"a", "c"}, false, 1},
		"all results":               {[]core.Message{calls("a", "b"), result("b"), result("a")}, nil, false, 1},
		"an id of the round before": {[]core.Message{calls("a"), result("a"), calls("a")}, []string{"a"}, false, 2},
		"the answer":                {[]core.Message{calls("a"), result("a"), text}, nil, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := nodes.AgentState{RunMessages: c.log}
			var open []string
			for _, call := range s.OpenCalls() {
				open = append(open, call.ID)
			}
			if diff := cmp.Diff(c.open, open); diff != "" {
				t.Errorf("open calls (-want +got):\n%s", diff)
			}
			if _, ok := s.Answer(); ok != c.answered {
				t.Errorf("answered: got %v, want %v", ok, c.answered)
			}
			if got := s.Iteration(); got != c.iteration {
				t.Errorf("got iteration %d, want %d (W13)", got, c.iteration)
			}
		})
	}
}

// A compaction that takes the summary away, as an edit does, leaves none behind.
func TestWith(t *testing.T) {
	t.Parallel()
	notes := "notes"
	s := nodes.AgentState{}.With(compaction.Turn{Session: core.Session{ConversationSummary: &notes}, History: []core.Message{{ID: "m"}}})
	if s.ConversationSummary != notes || len(s.ContextMessages) != 1 {
		t.Errorf("got summary %q, %d messages", s.ConversationSummary, len(s.ContextMessages))
	}
	if s = s.With(compaction.Turn{}); s.ConversationSummary != "" || len(s.ContextMessages) != 0 {
		t.Errorf("got summary %q, %d messages, want none", s.ConversationSummary, len(s.ContextMessages))
	}
}
